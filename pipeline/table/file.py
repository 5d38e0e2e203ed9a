"""A Parquet file of a table, as its log knows it."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file: complete, of one day and one bucket, never changed once it is committed."""

    path: str
    """Relative to the table."""
    day: int
    """Days since 1970, UTC; 0 in a table without days."""
    bucket: int
    """Number of the bucket; 0 in a table without."""
    rows: int
    """How many rows it holds."""
    size: int
    """Bytes; a file of another size is damaged."""
    first: int | None = None
    """Least value of the column that days are taken from, ms since 1970."""
    last: int | None = None
    """Greatest value of that column."""

    def statistics(self, day_of: str | None) -> str:
        """Return what a Delta log says about it."""
        known: dict[str, object] = {"numRecords": self.rows}
        if day_of is not None and self.first is not None:
            known["minValues"] = {day_of: self.first}
            known["maxValues"] = {day_of: self.last}
        return json.dumps(known)

    @property
    def name(self) -> str:
        """File name; those of later appends sort after those of earlier ones."""
        return self.path.rpartition("/")[2]


def reading_order(file: File) -> tuple[int, int, str]:
    """Sort files by bucket, then by day, then by when they were appended."""
    return file.bucket, file.day, file.name
