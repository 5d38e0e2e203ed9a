"""
The log of commits: which files make up a table.

It is a Delta Lake log, kept by the library deltalake; only this file calls it. The library takes two transactions that remove the same
file at once for compatible when they come from this interface, so each removal also counts up one application's transactions, which it
does compare: of two that started from the same version one fails (tests/pipeline/table/test_concurrency.py).
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Self
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from ..errors import (
    ChangedRows,
    LostCommit,
    NoTable,
    NotWritten,
    TableError,
    UnreadableTable,
)
from .layout import File, TableLayout, reading_order
from .storage import Storage, is_elsewhere, is_unreachable, plain, unreachable

_LAYOUT: Final = "quotascope.layout"
_REMOVALS: Final = "quotascope.removals"
_DROPPED: Final = "quotascope.dropped"
"""Its version is the first day that was kept when days were last dropped."""
_PHYSICAL: Final = "delta.columnMapping.physicalName"
"""What a column is called in the files."""
_UNSUPPORTED: Final = "Unsupported table features"
"""In the library's error about a commit to a table with features of Delta that it does not know."""
_PARTITIONS: Final = [("day", pa.int32()), ("bucket", pa.int32())]


class Log:
    """
    The commits of one table.

    Args:
        storage: where it lies.
        table: what the library opened there.

    """

    def __init__(self, storage: Storage, table: DeltaTable) -> None:
        self._storage = storage
        self._table = table
        text = table.metadata().configuration.get(_LAYOUT)
        if text is None:
            raise UnreadableTable(storage.uri, "it is a Delta table of another program")
        for column in table.schema().fields:
            held = column.metadata.get(_PHYSICAL, column.name)
            if held != column.name:
                raise UnreadableTable(storage.uri, f"its column {column.name} was added or renamed under delta.columnMapping.mode: rename or drop it again")  # fmt: skip
        self.layout: TableLayout = TableLayout.from_json(text)

    @classmethod
    def create(cls, storage: Storage, schema: pa.Schema, layout: TableLayout) -> Self:
        """
        Make an empty table, or open the one that is there.

        Of several that make it at once one succeeds: without retries, or the library would make it once more on top of the first.
        """
        try:
            DeltaTable.create(
                storage.uri,
                _with_partitions(schema),
                mode="ignore",
                partition_by=[name for name, _ in _PARTITIONS],
                configuration={_LAYOUT: layout.to_json(), **_statistics(layout)},
                storage_options=dict(storage.options),
                commit_properties=CommitProperties(max_commit_retries=0),
                raise_if_key_not_exists=False,
            )
        except (OSError, DeltaError) as error:
            try:
                return cls.open(storage)  # another process has made it
            except TableError:
                raise NotWritten(storage.uri, plain(error)) from error
        log = cls.open(storage)
        known = log._table  # noqa: SLF001 - of the same class
        missing = {name: value for name, value in _statistics(log.layout).items() if name not in known.metadata().configuration}  # fmt: skip
        if missing:  # of an earlier release; only other programs need it, and another process may have set it
            with suppress(OSError, DeltaError):
                known.alter.set_table_properties(missing)
            log.refresh()
        return log

    @classmethod
    def open(cls, storage: Storage) -> Self:
        """
        Open a table.

        Raises:
            NoTable: there is none.
            UnreadableTable: its log is damaged, or is not of this project.
            UnreachableTable: permission, credentials or the storage keep it from being read.

        """
        try:
            table = DeltaTable(storage.uri, storage_options=dict(storage.options))
        except TableNotFoundError as error:
            raise NoTable(storage.uri) from error
        except (OSError, DeltaError) as error:
            raise _unread(storage, error) from error
        return cls(storage, table)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table's files."""
        found: Any = self._table.schema().to_arrow()
        schema = pa.schema(found)
        names = {name for name, _ in _PARTITIONS}
        return pa.schema([column for column in schema if column.name not in names])

    def add_columns(self, schema: pa.Schema) -> None:
        """
        Add the columns that the table, of an earlier release, does not have; they are null in its files.

        Raises:
            LostCommit: other processes committed first each time.
            NotWritten: no space, or no permission.

        """
        tries = 5
        while missing := [column for column in schema if column.name not in self.schema.names]:  # fmt: skip
            tries -= 1
            try:
                self._table.alter.add_columns(
                    [Field.from_arrow(column) for column in missing]
                )
            except CommitFailedError as error:  # another process may have added them
                failed = self._not_committed(error)
                if isinstance(failed, NotWritten) or not tries:
                    raise failed from error
            except (OSError, DeltaError) as error:
                raise NotWritten(self._storage.uri, plain(error)) from error
            self.refresh()

    @property
    def identity(self) -> str:
        """The table's id, made with it."""
        return str(self._table.metadata().id)

    @property
    def version(self) -> int:
        """Number of the last commit that this log has read, from 0."""
        return self._table.version()

    def refresh(self) -> None:
        """Read what was committed since."""
        try:
            self._table.update_incremental()
        except (OSError, DeltaError) as error:
            raise _unread(self._storage, error) from error

    def epoch_of(self, batch_id: str) -> int | None:
        """Return the last epoch of a batch id that was committed."""
        return self._table.transaction_version(batch_id)

    def files(self) -> tuple[File, ...]:
        """
        Return the files of the table, by bucket, day, and age.

        Raises:
            UnreadableTable: some rows are only marked as deleted.
            MissingFile, DamagedFile, UnreachableTable: a file that another program committed without its number of rows cannot be read.

        """
        features = self._table.protocol().reader_features or ()
        if "deletionVectors" in features and pa.table(self._table.deletion_vectors()).num_rows:  # fmt: skip
            # they could be read, but the library cannot take such a file out of the table: a compaction would double its rows
            name = f"delta.`{self._storage.uri}`"
            purge = f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = false) and REORG TABLE {name} APPLY (PURGE)"
            raise UnreadableTable(self._storage.uri, f"it has deletion vectors, which are not supported; in Spark, run {purge}")  # fmt: skip
        actions = pa.table(self._table.get_add_actions(flatten=True)).to_pylist()
        return tuple(sorted(map(self._file, actions), key=reading_order))

    def added_since(self, version: int) -> tuple[File, ...]:
        """
        Return the files that brought new rows after a commit, in the order of commits.

        Raises:
            UnreadableTable: the log has forgotten a commit since.
            ChangedRows: another program changed rows since.

        """
        later = range(version + 1, self.version + 1)
        return tuple(file for number in later for file in self._brought_by(number))

    def add(self, files: Iterable[File], epochs: Mapping[str, int]) -> None:
        """
        Commit new files as the next epoch of each of some batch ids.

        Raises:
            LostCommit: another process committed one of the ids meanwhile.
            NotWritten: the disk is full, or may not be written to.

        """
        self._commit(
            [self._added(file, new=True) for file in files],
            [Transaction(batch_id, epoch) for batch_id, epoch in epochs.items()],
        )

    @property
    def first_kept_day(self) -> int | None:
        """Days before this one (since 1970, UTC) were dropped; None when none ever were."""
        return self.epoch_of(_DROPPED)

    def replace(self, old: Iterable[File], new: Iterable[File]) -> None:
        """
        Commit that files are no longer part of the table, and others with the same rows are.

        Raises:
            LostCommit: another process removed files meanwhile.
            NotWritten: as in `add`.

        """
        removed = [self._removed(file, rows_stay=bool(new)) for file in old]
        added = [self._added(file, new=False) for file in new]
        self._commit([*removed, *added], [self._removal()])

    def drop(self, old: Iterable[File], first_kept_day: int) -> None:
        """
        Commit that files of days before one are no longer part of the table, and that these days were dropped.

        Raises:
            LostCommit: another process removed files meanwhile.
            NotWritten: as in `add`.

        """
        before = self.first_kept_day
        first = first_kept_day if before is None else max(before, first_kept_day)
        removed = [self._removed(file, rows_stay=False) for file in old]
        self._commit([*removed], [self._removal(), Transaction(_DROPPED, first)])

    def clean(self, older_than_hours: int) -> list[str]:
        """Delete files that no commit lists, or none any more, and that are older; return their paths."""
        try:
            paths = self._table.vacuum(
                retention_hours=older_than_hours,
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
            )
        except (OSError, DeltaError) as error:
            raise unreachable(self._storage, "its folder", error) from error
        return sorted(set(paths))

    def _brought_by(self, version: int) -> Iterator[File]:
        path = f"_delta_log/{version:020d}.json"
        try:
            with self._storage.filesystem.open_input_stream(path) as stream:
                lines = stream.read().splitlines()
        except FileNotFoundError as error:
            why = f"commit {version} is needed, and no longer there ({plain(error)})"
            raise UnreadableTable(self._storage.uri, why) from error
        except OSError as error:
            raise unreachable(self._storage, f"commit {version}", error) from error
        actions = [json.loads(line) for line in lines]
        added = [action["add"] for action in actions if "add" in action and action["add"]["dataChange"]]  # fmt: skip
        if added and any(action.get("remove", {}).get("dataChange") for action in actions):  # fmt: skip
            operation = next((action["commitInfo"].get("operation") for action in actions if "commitInfo" in action), None)  # fmt: skip
            raise ChangedRows(self._storage.uri, f"{version} ({operation})")
        yield from (self._file(_flat(each)) for each in added)

    def _file(self, action: dict[str, Any]) -> File:
        """What the log says about a file; the partitions are in it, whatever the file is called."""
        day_of, rows = self.layout.day_of, action.get("num_records")
        first, last = action.get(f"min.{day_of}"), action.get(f"max.{day_of}")
        file = File(
            path=action["path"],
            day=int(action["partition.day"]),
            bucket=int(action["partition.bucket"]),
            rows=0 if rows is None else rows,
            size=action["size_bytes"],
            first=first,
            last=last,
        )
        return file if rows is not None else replace(file, rows=self._storage.rows_of(file))  # fmt: skip

    def _removal(self) -> Transaction:
        return Transaction(_REMOVALS, (self.epoch_of(_REMOVALS) or 0) + 1)

    def _commit(
        self, actions: list[AddAction | RemoveAction], transactions: list[Transaction]
    ) -> None:
        try:
            self._table.create_write_transaction(
                actions,
                "append",
                _with_partitions(self.schema),
                partition_by=[name for name, _ in _PARTITIONS],
                commit_properties=CommitProperties(app_transactions=transactions),
            )
        except CommitFailedError as error:
            raise self._not_committed(error) from error
        except (OSError, DeltaError) as error:
            raise NotWritten(self._storage.uri, plain(error)) from error
        self.refresh()

    def _not_committed(self, error: CommitFailedError) -> TableError:
        """What the library means by the one exception that it has for commits."""
        why = plain(error)
        if _UNSUPPORTED in why:
            return NotWritten(self._storage.uri, f"another program switched on what this one cannot write ({why}): in Spark, ALTER TABLE delta.`{self._storage.uri}` DROP FEATURE each of them")  # fmt: skip
        return LostCommit(self._storage.uri, why)

    def _added(self, file: File, *, new: bool) -> AddAction:
        known: dict[str, object] = {"numRecords": file.rows}
        if self.layout.day_of is not None and file.first is not None:
            known["minValues"] = {self.layout.day_of: file.first}
            known["maxValues"] = {self.layout.day_of: file.last}
        return AddAction(
            file.path, file.size, _values(file), _now_ms(), new, json.dumps(known)
        )

    def _removed(self, file: File, *, rows_stay: bool) -> RemoveAction:
        if is_elsewhere(
            file.path
        ):  # the library would write the URI in another way, and the rows would stay
            raise NotWritten(self._storage.uri, "it is a shallow clone, and lists files of another table: in Spark, run OPTIMIZE, DELETE or a deep clone")  # fmt: skip
        return RemoveAction(file.path, not rows_stay, _now_ms(), file.size, _values(file))  # fmt: skip


def _statistics(layout: TableLayout) -> dict[str, str]:
    """
    Which columns the log has statistics of, as a property of the table.

    Without it the library's data sets of pyarrow take a column without statistics for one without values, and a filter of it finds nothing.
    """
    if layout.day_of is None:
        return {"delta.dataSkippingNumIndexedCols": "0"}
    return {"delta.dataSkippingStatsColumns": layout.day_of}


def _unread(storage: Storage, error: Exception) -> TableError:
    """What it means that a log cannot be read."""
    if is_unreachable(storage, error):
        return unreachable(storage, "its log (_delta_log)", error)
    return UnreadableTable(storage.uri, plain(error))


def _flat(added: dict[str, Any]) -> dict[str, Any]:
    """An `add` of a log's JSON with the keys of the library's flattened actions."""
    statistics = json.loads(added.get("stats") or "{}")
    flat = {"path": unquote(added["path"]), "size_bytes": added["size"], "num_records": statistics.get("numRecords")}  # fmt: skip
    for kind, values in (
        ("partition", added["partitionValues"]),
        ("min", statistics.get("minValues", {})),
        ("max", statistics.get("maxValues", {})),
    ):
        flat |= {f"{kind}.{name}": value for name, value in values.items()}
    return flat


def _values(file: File) -> dict[str, str | None]:
    return {"day": str(file.day), "bucket": str(file.bucket)}


def _with_partitions(schema: pa.Schema) -> pa.Schema:
    for name, kind in _PARTITIONS:
        schema = schema.append(pa.field(name, kind, nullable=False))
    return schema


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
