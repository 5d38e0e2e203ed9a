"""
The log of commits, which says which files make up a table.

It is a Delta Lake log, kept by the library deltalake. The library takes two transactions that remove the same file at once for compatible
when they come from this interface, so each removal also counts up one application's transactions, which it does compare: of two that
started from the same version one fails (tests/pipeline/table/test_concurrency.py).
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from ..errors import ChangedRows, LostCommit, NoTable, NotWritten, TableError, UnreadableTable, plain
from .storage import ABSENT, File, Storage, TableLayout, is_elsewhere, is_unreachable, unreachable

_LAYOUT: Final = "quotascope.layout"
_REMOVALS: Final = "quotascope.removals"
_PHYSICAL: Final = "delta.columnMapping.physicalName"
"""What a column is called in the files."""
_UNSUPPORTED: Final = "Unsupported table features"
"""In the library's error about a commit to a table with features of Delta that it does not know."""
_PARTITIONS: Final = ["day", "bucket"]


def opened(storage: Storage) -> DeltaTable:
    """
    Open a log.

    Raises:
        NoTable: there is none.
        UnreadableTable: it is damaged, or is not of this project.
        UnreachableTable: permission, credentials or the storage keep it from being read.

    """
    try:
        log = DeltaTable(storage.uri)
    except TableNotFoundError as error:
        if storage.is_local:
            # deltalake finds no table either where a folder may not be entered, or its disk does not answer
            try:
                Path(storage.uri, "_delta_log").stat()
            except OSError as closed:
                if closed.errno not in ABSENT:
                    raise _unread(storage, closed) from error
        raise NoTable(storage.uri) from error
    except (OSError, DeltaError) as error:
        raise _unread(storage, error) from error
    if _LAYOUT not in log.metadata().configuration:
        raise UnreadableTable(storage.uri, "it is a Delta table of another program")
    for column in log.schema().fields:
        if column.metadata.get(_PHYSICAL, column.name) != column.name:
            raise UnreadableTable(
                storage.uri,
                f"its column {column.name} was added or renamed under delta.columnMapping.mode: rename or drop it again",
            )
    return log


def refresh(storage: Storage, log: DeltaTable) -> None:
    """Read what was committed since; raises what `opened` raises."""
    try:
        log.update_incremental()
    except (OSError, DeltaError) as error:
        raise _unread(storage, error) from error


def made(storage: Storage, schema: pa.Schema, layout: TableLayout) -> DeltaTable:
    """
    Make the log of an empty table, or open the one that is there.

    Of several that make it at once one succeeds: without retries, or the library would make it once more on top of the first.
    """
    partitions = [pa.field(name, pa.int32(), nullable=False) for name in _PARTITIONS]
    try:
        DeltaTable.create(
            storage.uri,
            pa.schema([*schema, *partitions]),
            mode="ignore",
            partition_by=_PARTITIONS,
            configuration={_LAYOUT: json.dumps(asdict(layout)), **_statistics(layout)},
            commit_properties=CommitProperties(max_commit_retries=0),
            raise_if_key_not_exists=False,
        )
    except (OSError, DeltaError) as error:
        try:
            return opened(storage)  # another process has made it
        except TableError:
            raise NotWritten(storage.uri, error) from error
    return opened(storage)


def layout_of(log: DeltaTable) -> TableLayout:
    """How rows are spread over files; an earlier release had an order of rows there, which counts no more."""
    held = json.loads(log.metadata().configuration[_LAYOUT])
    return TableLayout(**{each.name: held[each.name] for each in fields(TableLayout)})


def schema_of(log: DeltaTable) -> pa.Schema:
    """The columns of the table's files."""
    found: Any = log.schema().to_arrow()
    return pa.schema([column for column in pa.schema(found) if column.name not in _PARTITIONS])


def upgrade(storage: Storage, log: DeltaTable, schema: pa.Schema) -> None:
    """
    Add the columns and properties that a table of an earlier release does not have; the columns are null in its files.

    Raises:
        LostCommit: another process committed first; it may have added them.
        NotWritten: no space, or no permission.

    """
    refresh(storage, log)
    held, known = schema_of(log).names, log.metadata().configuration
    try:
        if columns := [Field.from_arrow(column) for column in schema if column.name not in held]:
            log.alter.add_columns(columns)
        if properties := {name: value for name, value in _statistics(layout_of(log)).items() if name not in known}:
            log.alter.set_table_properties(properties)
    except (OSError, DeltaError) as error:
        raise _not_committed(storage, error) from error


def files_of(storage: Storage, log: DeltaTable, layout: TableLayout) -> tuple[File, ...]:
    """Return the files of the table as `Table.files` does; raises what that raises."""
    features = log.protocol().reader_features or ()
    if "deletionVectors" in features and pa.table(log.deletion_vectors()).num_rows:
        # they could be read, but the library cannot take such a file out of the table: a compaction would double its rows
        name = f"delta.`{storage.uri}`"
        purge = f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = false) and REORG TABLE {name} APPLY (PURGE)"
        raise UnreadableTable(storage.uri, f"it has deletion vectors, which are not supported; in Spark, run {purge}")
    files: list[File] = []
    for action in pa.table(log.get_add_actions()).to_pylist():
        statistics = [action.get(name) for name in ("num_records", "min", "max")]
        files.append(_file(storage, layout, action["path"], action["size_bytes"], action["partition"], statistics))
    return tuple(sorted(files, key=lambda file: (file.bucket, file.day, file.path)))


def brought_by(storage: Storage, layout: TableLayout, version: int) -> Iterator[File]:
    """Yield the files of a commit that brought new rows; raises what `Table.added_since` raises."""
    path = f"_delta_log/{version:020d}.json"
    try:
        with storage.filesystem.open_input_stream(path) as stream:
            actions = [json.loads(line) for line in stream.read().splitlines()]
    except FileNotFoundError as error:
        why = f"commit {version} is needed, and no longer there ({plain(error)})"
        raise UnreadableTable(storage.uri, why) from error
    except OSError as error:
        raise unreachable(storage, f"commit {version}", error) from error
    added = [action["add"] for action in actions if "add" in action and action["add"]["dataChange"]]
    if added and any(action.get("remove", {}).get("dataChange") for action in actions):
        operation = next((action["commitInfo"].get("operation") for action in actions if "commitInfo" in action), None)
        raise ChangedRows(storage.uri, f"{version} ({operation})")
    for each in added:
        found = json.loads(each.get("stats") or "{}")
        statistics = [found.get(name) for name in ("numRecords", "minValues", "maxValues")]
        yield _file(storage, layout, unquote(each["path"]), each["size"], each["partitionValues"], statistics)


def _file(
    storage: Storage, layout: TableLayout, path: str, size: int, partition: Mapping[str, Any], statistics: Sequence[Any]
) -> File:
    """One file; of the statistics, which are rows, least and greatest values, any may be None."""
    rows, *values = statistics
    first, last = ((of_columns or {}).get(layout.day_of) for of_columns in values)
    day, bucket = (int(partition[name]) for name in _PARTITIONS)
    rows = storage.rows_of(path) if rows is None else rows
    return File(path=path, day=day, bucket=bucket, rows=rows, size=size, first=first, last=last)


def commit(
    storage: Storage, log: DeltaTable, added: Sequence[File], removed: Sequence[File], counts: Mapping[str, int]
) -> None:
    """
    Commit that files become part of the table, or are no longer, and what the log counts by name, of which the largest number stays.

    Files that are added where others are removed hold their rows.

    Raises:
        LostCommit: another process counted up one of the names meanwhile, or removed files while this removes some.
        NotWritten: the disk is full, or may not be written to, or files are to be removed of a shallow clone.

    """
    if any(is_elsewhere(file.path) for file in removed):
        # the library would write a file's URI in another way, and its rows would stay
        raise NotWritten(
            storage.uri,
            "it is a shallow clone, and lists files of another table: in Spark, run OPTIMIZE, DELETE or a deep clone",
        )
    if removed:
        counts = {**counts, _REMOVALS: (log.transaction_version(_REMOVALS) or 0) + 1}
    transactions: list[Transaction] = []
    for name, number in counts.items():
        known = log.transaction_version(name)
        transactions.append(Transaction(name, number if known is None else max(number, known)))
    now_ms, day_of, new = time.time_ns() // 1_000_000, layout_of(log).day_of, not removed
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(file.path, not added, now_ms, file.size, _partition(file)) for file in removed
    ]
    for file in added:
        statistics: dict[str, object] = {"numRecords": file.rows}
        if file.first is not None:
            statistics |= {"minValues": {day_of: file.first}, "maxValues": {day_of: file.last}}
        actions.append(AddAction(file.path, file.size, _partition(file), now_ms, new, json.dumps(statistics)))
    try:
        log.create_write_transaction(
            actions,
            "append",
            log.schema(),
            partition_by=_PARTITIONS,
            commit_properties=CommitProperties(app_transactions=transactions),
        )
    except (OSError, DeltaError) as error:
        raise _not_committed(storage, error) from error


def _partition(file: File) -> dict[str, str | None]:
    return {"day": str(file.day), "bucket": str(file.bucket)}


def _not_committed(storage: Storage, error: Exception) -> TableError:
    """What the library means by an error, of which it has one for commits."""
    if _UNSUPPORTED in plain(error):
        return NotWritten(
            storage.uri,
            f"another program switched on what this one cannot write ({plain(error)}): in Spark, ALTER TABLE delta.`{storage.uri}` DROP FEATURE each of them",
        )
    lost = isinstance(error, CommitFailedError)
    return (LostCommit if lost else NotWritten)(storage.uri, error)


def _unread(storage: Storage, error: Exception) -> TableError:
    """What it means that a log cannot be read."""
    if is_unreachable(storage, error):
        return unreachable(storage, "its log (_delta_log)", error)
    return UnreadableTable(storage.uri, error)


def _statistics(layout: TableLayout) -> dict[str, str]:
    """
    Which columns the log has statistics of, as a property of the table.

    Without it the library's data sets of pyarrow take a column without statistics for one without values, and a filter of it finds nothing.
    """
    if layout.day_of is None:
        return {"delta.dataSkippingNumIndexedCols": "0"}
    return {"delta.dataSkippingStatsColumns": layout.day_of}
