"""
The log of commits, which lists the files of a table.

It is a Delta Lake log, written by the library deltalake. The library allows two transactions at once that remove the
same file through this interface. So a removal also increments a transaction number of an application, which the library
compares: of two transactions that began from the same version, one fails (tests/pipeline/table/test_concurrency.py).
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from ..errors import ChangedRows, LostCommit, NoTable, NotWritten, TableError, UnreadableTable, plain
from . import kept
from .storage import ABSENT, File, Storage, TableLayout, is_elsewhere, is_unreachable, unreachable

_LAYOUT: Final = "quotascope.layout"
"""Property of a table with its layout, by which our tables are known."""
_REMOVALS: Final = "quotascope.removals"
"""Name under which the log counts commits that remove files."""
_PHYSICAL: Final = "delta.columnMapping.physicalName"
"""Property with a column's name in the files."""
_UNSUPPORTED: Final = "Unsupported table features"
"""Text in the library's error about a commit to a table with features of Delta that it does not know."""
_ENCODED: Final = re.compile("%[0-9A-Fa-f]{2}")
_PARTITIONS: Final = ["day", "shard"]
"""Columns of the log by which files are told apart; they are in the paths of files, and not in the files."""
_REPAIR: Final = "`quotascope history repair` restores what it can, and says what is lost"


def opened(storage: Storage) -> DeltaTable:
    """
    Open the log of a table.

    Raises:
        NoTable: the folder has no log.
        UnreadableTable: the log is damaged, or another program made it.
        UnreachableTable: the log could not be read, as permission, credentials or an answer of the storage are missing.
        TableError: the library would use another path.

    """
    _check_path(storage)
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
        if _was_committed(storage):
            raise UnreadableTable(storage.uri, f"it is gone; {_REPAIR}") from error
        raise NoTable(storage.uri) from error
    except (OSError, DeltaError) as error:
        raise _unread(storage, error) from error
    if _LAYOUT not in log.metadata().configuration:
        raise UnreadableTable(storage.uri, "it is a Delta table of another program")
    for column in log.schema().fields:
        if column.metadata.get(_PHYSICAL, column.name) != column.name:
            raise UnreadableTable(
                storage.uri,
                (
                    f"its column {column.name} was added or renamed under delta.columnMapping.mode: rename "
                    "or drop it again"
                ),
            )
    _compare(storage, log)
    return log


def _was_committed(storage: Storage) -> bool:
    """Return whether commits of a table are kept beside its log. Raises `UnreachableTable`."""
    try:
        return kept.last_of(kept.listed(storage)) >= 0
    except OSError as error:
        if error.errno in ABSENT:
            return False
        raise _unread(storage, error) from error


def _check_path(storage: Storage) -> None:
    """Refuse a path that the library decodes like a URI, so that log and files would be in different folders."""
    if storage.is_local and (encoded := _ENCODED.search(str(Path(storage.uri).absolute()))):
        raise TableError(
            storage.uri,
            f"the library for Delta tables takes {encoded[0]} in a path for another character: use a folder without it",
        )


def refresh(storage: Storage, log: DeltaTable) -> None:
    """Read the commits since the last read; raises what `opened` raises."""
    compared_version = log.version()
    _update(storage, log)
    if log.version() != compared_version:
        _compare(storage, log, compared_version)


def _update(storage: Storage, log: DeltaTable) -> None:
    """Read the commits since the last read, without comparing them. Raises `UnreadableTable` or `UnreachableTable`."""
    try:
        log.update_incremental()
    except (OSError, DeltaError) as error:
        raise _unread(storage, error) from error


def _compare(storage: Storage, log: DeltaTable, compared_version: int = -1) -> None:
    """
    Compare a log with the copies of its commits; commits up to `compared_version` were compared before.

    Raises:
        UnreadableTable: the log lacks the last commit, or has other bytes than were written.
        UnreachableTable: the copies could not be read.

    """
    try:
        copies = kept.listed(storage)
        last_commit = kept.last_of(copies)
        if last_commit > log.version():  # the log was read before that commit, or has lost it
            log.update_incremental()
        if last_commit > log.version():
            raise UnreadableTable(
                storage.uri,
                f"it ends with commit {log.version()}, and commit {last_commit} was made after that; {_REPAIR}",
            )
        if changed := kept.changed(storage, copies, log.version(), compared_version):
            raise UnreadableTable(
                storage.uri, f"{changed.original} is gone or has other bytes than were written; {_REPAIR}"
            )
    except (OSError, DeltaError) as error:
        raise _unread(storage, error) from error


def made(storage: Storage, schema: pa.Schema, layout: TableLayout) -> DeltaTable:
    """
    Create the log of an empty table, or open the existing one.

    If several processes create it at once, one of them succeeds. Retries are switched off, as with them the library
    would create the log again on top of the first one.
    """
    _check_path(storage)
    if _was_committed(storage):
        return opened(storage)
    partitions = [pa.field(name, pa.int32(), nullable=False) for name in _PARTITIONS]
    try:
        DeltaTable.create(
            storage.uri,
            pa.schema([*schema, *partitions]),
            mode="ignore",
            partition_by=_PARTITIONS,
            configuration={_LAYOUT: json.dumps(asdict(layout)), **_properties(layout)},
            commit_properties=CommitProperties(max_commit_retries=0),
            raise_if_key_not_exists=False,
        )
    except (OSError, DeltaError) as error:
        try:
            return opened(storage)  # another process has made it
        except TableError:
            raise NotWritten(storage.uri, error) from error
    log = opened(storage)
    if not log.version():
        kept.keep(storage, 0)
    return log


def layout_of(log: DeltaTable) -> TableLayout:
    """Return the layout of a table, which its log has in a property."""
    return TableLayout(**json.loads(log.metadata().configuration[_LAYOUT]))


def schema_of(log: DeltaTable) -> pa.Schema:
    """Return the columns of the table's files."""
    schema: Any = log.schema().to_arrow()
    return pa.schema([column for column in pa.schema(schema) if column.name not in _PARTITIONS])


def files_of(storage: Storage, log: DeltaTable, layout: TableLayout) -> tuple[File, ...]:
    """Return the files of the table as `Table.files` does; raises what that raises."""
    features = log.protocol().reader_features or ()
    if "deletionVectors" in features and pa.table(log.deletion_vectors()).num_rows:
        # they could be read, but the library cannot take such a file out of the table: a compaction would double its
        # rows
        name = f"delta.`{storage.uri}`"
        purge = (
            f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = false) and REORG TABLE {name} "
            "APPLY (PURGE)"
        )
        raise UnreadableTable(storage.uri, f"it has deletion vectors, which are not supported; in Spark, run {purge}")
    files: list[File] = []
    for action in pa.table(log.get_add_actions()).to_pylist():
        statistics = [action.get(name) for name in ("num_records", "min", "max")]
        files.append(_file(storage, layout, action["path"], action["size_bytes"], action["partition"], statistics))
    return tuple(sorted(files, key=lambda file: (file.shard, file.day, file.path)))


def brought_by(storage: Storage, layout: TableLayout, version: int) -> Iterator[File]:
    """Yield the files with new rows of a commit; raises what `Table.added_since` raises."""
    path = f"_delta_log/{version:020d}.json"
    try:
        with storage.filesystem.open_input_stream(path) as stream:
            actions = [json.loads(line) for line in stream.read().splitlines()]
    except FileNotFoundError as error:
        reason = f"commit {version} is needed, and no longer there ({plain(error)})"
        raise UnreadableTable(storage.uri, reason) from error
    except OSError as error:
        raise unreachable(storage, f"commit {version}", error) from error
    added = [action["add"] for action in actions if "add" in action and action["add"]["dataChange"]]
    if added and any(action.get("remove", {}).get("dataChange") for action in actions):
        operation = next((action["commitInfo"].get("operation") for action in actions if "commitInfo" in action), None)
        raise ChangedRows(storage.uri, f"{version} ({operation})")
    for addition in added:
        fields = json.loads(addition.get("stats") or "{}")
        statistics = [fields.get(name) for name in ("numRecords", "minValues", "maxValues")]
        yield _file(
            storage, layout, unquote(addition["path"]), addition["size"], addition["partitionValues"], statistics
        )


def _file(
    storage: Storage, layout: TableLayout, path: str, size: int, partition: Mapping[str, Any], statistics: Sequence[Any]
) -> File:
    """Return a file; `statistics` has its number of rows and its least and greatest values, or None for each."""
    rows, *extremes = statistics
    first_ms, last_ms = ((by_column or {}).get(layout.day_of) for by_column in extremes)
    day, shard = (int(partition[name]) for name in _PARTITIONS)
    rows = storage.rows_of(path) if rows is None else rows
    return File(path=path, day=day, shard=shard, rows=rows, size=size, first_ms=first_ms, last_ms=last_ms)


def commit(
    storage: Storage,
    log: DeltaTable,
    added: Sequence[File],
    removed: Sequence[File],
    counts: Mapping[str, int],
    *,
    other_rows: bool = False,
) -> None:
    """
    Commit added and removed files, and numbers by name (`counts`), of which the log keeps the largest.

    If files are added and others removed, the added files have the same rows as the removed ones, unless `other_rows`.

    Raises:
        LostCommit: another process changed one of the numbers meanwhile, or removed files, too.
        NotWritten: the disk is full, may not be written to, or files of a shallow clone would be removed.

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
        logged = log.transaction_version(name)
        transactions.append(Transaction(name, number if logged is None else max(number, logged)))
    now_ms, day_of = time.time_ns() // 1_000_000, layout_of(log).day_of
    # Delta's `dataChange`: false if the rows of the table stay the same, as in a compaction
    adds_rows, removes_rows = other_rows or not removed, other_rows or not added
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(file.path, removes_rows, now_ms, file.size, _partition(file)) for file in removed
    ]
    for file in added:
        statistics: dict[str, object] = {"numRecords": file.rows}
        if file.first_ms is not None:
            statistics |= {"minValues": {day_of: file.first_ms}, "maxValues": {day_of: file.last_ms}}
        actions.append(AddAction(file.path, file.size, _partition(file), now_ms, adds_rows, json.dumps(statistics)))
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
    _update(storage, log)  # a commit of this process needs no comparison, which would list `_commits`
    kept.keep(storage, log.version())


def _partition(file: File) -> dict[str, str | None]:
    """Return the values of `_PARTITIONS` of a file, as Delta writes them."""
    return {"day": str(file.day), "shard": str(file.shard)}


def _not_committed(storage: Storage, error: Exception) -> TableError:
    """Return the error for a failed commit by its cause; the library has one error for all causes."""
    if _UNSUPPORTED in plain(error):
        return NotWritten(
            storage.uri,
            (
                f"another program switched on what this one cannot write ({plain(error)}): in Spark, ALTER TABLE "
                f"delta.`{storage.uri}` DROP FEATURE each of them"
            ),
        )
    is_lost = isinstance(error, CommitFailedError)
    return (LostCommit if is_lost else NotWritten)(storage.uri, error)


def _unread(storage: Storage, error: Exception) -> TableError:
    """Return the error for a log that cannot be read, by the cause."""
    if is_unreachable(storage, error):
        return unreachable(storage, "its log (_delta_log)", error)
    return UnreadableTable(storage.uri, f"{plain(error)}; {_remedy(storage)}")


def _remedy(storage: Storage) -> str:
    """Return the advice for a damaged log, which depends on whether there are copies of its commits."""
    with suppress(OSError):
        if kept.listed(storage):
            return _REPAIR
    return (
        "there are no copies of its commits (_commits) to restore it from: move the folder away, and ingest the "
        "request logs again"
    )


def _properties(layout: TableLayout) -> dict[str, str]:
    """
    Return the properties of a table for Delta: the columns with statistics, and no expiry of the log.

    Other columns have no statistics, since the library's data sets of pyarrow would take a column without statistics in
    a file for one without values. The log must not expire, as it alone lists rows that followers have not taken over;
    `Table.forget` removes old commits.
    """
    statistics = (
        ("delta.dataSkippingNumIndexedCols", "0")
        if layout.day_of is None
        else ("delta.dataSkippingStatsColumns", layout.day_of)
    )
    return dict((statistics, ("delta.enableExpiredLogCleanup", "false")))
