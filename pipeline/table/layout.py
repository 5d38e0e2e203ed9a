"""How the rows of a table are spread over its files, and in which order they lie there."""

import json
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """
    The order and the partitions of a table.

    A file holds rows of one bucket and one day only. Both are small integers: what strangers named is never part of a path.
    """

    order: tuple[str, ...] = ()
    """Columns that each file is sorted by, the last one an integer; rows equal in all of them stay as they were appended."""
    bucket_of: str | None = None
    """Column of strings whose hash is the bucket; None for a table of one bucket."""
    buckets: int = 1
    """How many buckets there are; fixed when the table is made."""
    day_of: str | None = None
    """Column with ms since 1970 whose UTC day a file belongs to; None for a table of one day."""
    sums: tuple[str, ...] = ()
    """Integer columns that a compaction adds up over rows equal in `order`; without any it keeps every row."""

    def to_json(self) -> str:
        """Write it as the table's log keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        return cls(
            order=tuple(fields["order"]),
            bucket_of=fields["bucket_of"],
            buckets=fields["buckets"],
            day_of=fields["day_of"],
            sums=tuple(fields["sums"]),
        )
