"""Tables whose writer dies, whose disk is full, or whose files were damaged."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.pipeline.privileges import open_folder, without_privileges
from tests.pipeline.table.rows import LAYOUT, SCHEMA, amounts, append, batch

from quotascope.pipeline.errors import (
    DamagedFile,
    LostCommit,
    MissingFile,
    NotWritten,
    TableError,
    UnreachableTable,
    UnreadableTable,
    plain,
)
from quotascope.pipeline.table import File, Table, log
from quotascope.pipeline.table import storage as storage_module
from quotascope.pipeline.table.storage import Storage

ROOT = Path(__file__).parents[3]


def _files(table: Table) -> list[Path]:
    return sorted(Path(table.storage.uri).glob("day=*/**/*.parquet"))


def _committed_by_another_program(table: Table, held: pa.Table) -> None:
    """A file of another name, at another place, with other columns or another order than the table's."""
    path = Path(table.storage.uri, "part-0.parquet")
    pq.write_table(held, path, row_group_size=300)
    file = File(path=path.name, day=3, shard=0, rows=len(held), size=path.stat().st_size)
    table.advance("another", [file], after_epoch=None, epoch=0)


def test_rows_of_another_program(table: Table) -> None:
    """Rows of another program get the table's columns and types; a nullable column may be missing."""
    file_of_table = pa.Table.from_batches(table.batches(table.shards()[0]))
    kinds: Any = {"timestamp": pa.int32(), "user": pa.large_string(), "amount": pa.int64()}
    late = file_of_table.set_column(2, "timestamp", pc.add(file_of_table["timestamp"], 1)).select([*kinds])
    _committed_by_another_program(table, late.sort_by("amount").cast(pa.schema(kinds)))
    rows_found = pa.Table.from_batches(table.batches(table.shards()[0]))
    assert rows_found.schema == SCHEMA
    assert amounts(rows_found) == sorted(2 * amounts(file_of_table))


@pytest.mark.parametrize(
    "held", [batch(1).drop_columns("user"), batch(1).set_column(0, "user", pa.nulls(1_000, pa.string()))]
)
def test_rows_of_another_program_without_values(table: Table, held: pa.Table) -> None:
    """A column that is never null has to be there."""
    _committed_by_another_program(table, held)
    with pytest.raises(DamagedFile, match=r"its file part-0.parquet is damaged: column user has no value in \d+ rows"):
        table.read()


WRITER = """
import sys
from tests.pipeline.table.rows import LAYOUT, SCHEMA, batch
from quotascope.pipeline.table import Table
table = Table.create(sys.argv[1], SCHEMA, LAYOUT)
for number in range(1_000):
    files = table.stage(batch(number))
    print("staged", number, flush=True)
    table.advance(f"batch {number}", files, after_epoch=None, epoch=0)
"""


def test_a_killed_writer_leaves_what_it_committed(tmp_path: Path) -> None:
    """
    Killed between the files and the commit of a batch, a writer leaves whole batches.

    The same appends then go on from there.
    """
    path = str(tmp_path / "table")
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while writer.stdout.readline() != "staged 3\n":
            assert writer.poll() is None
        writer.kill()
        staged = 3 + len(writer.stdout.readlines())  # what it still did before the signal reached it
    table = Table.open(path)
    commits_kept = table.read().num_rows // 1_000
    assert commits_kept in (staged, staged + 1)
    assert amounts(table.read()) == list(range(commits_kept * 1_000))
    added = [append(table, f"batch {number}", batch(number)) for number in range(commits_kept + 2)]
    assert added == [0] * commits_kept + [1_000] * 2
    assert amounts(table.read()) == list(range((commits_kept + 2) * 1_000))
    table.clean(0)
    assert len(_files(table)) == len(table.files())


def test_a_full_disk_leaves_the_last_commit(tmp_path: Path) -> None:
    """
    A disk that is full for the data, the commit or a compaction leaves the table unchanged.

    With space the same appends work.
    """
    own_mounts = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    command = [*own_mounts, sys.executable, "-m", "tests.pipeline.table.small_disk", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_truncated_file_is_named(table: Table, keep: int) -> None:
    """A file that is shorter than it was committed is not read at all; the message names it and both sizes."""
    damaged = _files(table)[0]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:keep])
    name = damaged.relative_to(table.storage.uri)
    about = f"{name} is damaged: it has {len(whole[:keep])} bytes, {len(whole)} were committed"
    with pytest.raises(DamagedFile, match=about) as raised:
        table.read()
    assert raised.value.file == str(name)
    append(table, "second", batch(1))
    with pytest.raises(DamagedFile):
        table.compact()
    assert table.version == 2


def _overwrite(file: Path, begin: int, end: int) -> None:
    content = bytearray(file.read_bytes())
    content[begin:end] = b"x" * len(content[begin:end])
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (Path.unlink, MissingFile, "is gone; if the table was compacted"),
        (partial(_overwrite, begin=0, end=-1), DamagedFile, "not those that were committed"),
        (partial(_overwrite, begin=4, end=200), DamagedFile, "not those that were committed"),
    ],
    ids=["deleted", "no Parquet", "broken pages"],
)
def test_what_is_wrong_with_a_file_is_reported(
    table: Table, damage: Callable[[Path], object], error: type[TableError], words: str
) -> None:
    """A missing file, or one with other bytes of the right size, is an error, and not fewer rows."""
    damage(_files(table)[0])
    with pytest.raises(error, match=words):
        table.read()


@pytest.mark.parametrize(("first", "last", "words"), [(0, -1, "Parquet"), (4, 200, "history repair")])
def test_a_damaged_file_of_another_program_is_reported(table: Table, first: int, last: int, words: str) -> None:
    """
    A damaged file of another program, whose name has no digest, is reported when it cannot be decoded.

    Arrow raises for pages what a system raises for a broken disk.
    """
    (file_of_table, *_) = table.files()
    copy = Path(table.storage.uri, "copy.parquet")
    copy.write_bytes(Path(table.storage.uri, file_of_table.path).read_bytes())
    _overwrite(copy, first, last)
    file = File(
        path=copy.name,
        day=file_of_table.day,
        shard=file_of_table.shard,
        rows=file_of_table.rows,
        size=file_of_table.size,
    )
    with pytest.raises(DamagedFile, match=rf"is damaged: .*{words}"):
        table.read(files=[file])


def test_permissions_that_cannot_be_set(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A storage without permissions is accepted while files need only its own.

    Else nothing is committed that others may read.
    """

    def refused(_path: Path, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    append(table, "second", batch(1))
    files_before = _files(table)
    mode = files_before[0].stat().st_mode
    files_before[0].chmod(0o600)
    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(NotWritten, match="Operation not permitted"):
        table.compact()
    assert _files(table) == files_before
    os.chmod(files_before[0], mode)  # noqa: PTH101 - the other one is refused
    assert table.compact() == len(files_before)


def test_features_that_cannot_be_written(table: Table) -> None:
    """A table with unsupported writer features is still read, and a writer gives up at once."""
    features = {"readerFeatures": [], "writerFeatures": ["rowTracking", "domainMetadata"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    commits = Path(table.storage.uri, "_delta_log")
    (commits / f"{2:020d}.json").write_text(json.dumps({"protocol": protocol}))
    with pytest.raises(NotWritten, match=r"RowTracking.*DROP FEATURE"):
        append(table, "second", batch(1))
    assert table.read().num_rows == 1_000


@pytest.mark.parametrize("kept", ["file", "folder", "log", "commit", "history"])
def test_what_may_not_be_read_is_not_called_damaged(kept: str) -> None:
    """A file without permission is not called damaged; the message says whose permission helps."""
    with open_folder() as name:
        table = Table.create(f"{name}/kafka-connect", SCHEMA, LAYOUT)
        append(table, "first", batch(0))
        file = table.files()[0]
        root = Path(table.storage.uri)
        parts = {
            "file": root / file.path,
            "folder": (root / file.path).parent,
            "log": root / "_delta_log",
            "commit": root / "_delta_log" / f"{1:020d}.json",
            "history": root.parent,
        }
        mode = parts[kept].stat().st_mode
        parts[kept].chmod(0)
        why = r"ermission denied.*; let this user"
        with without_privileges(), pytest.raises(UnreachableTable, match=why) as raised:
            table.added_since(0) if kept == "commit" else Table.open(table.storage.uri).read()
        assert "damaged" not in str(raised.value)
        assert (file.path in str(raised.value)) == (kept in {"file", "folder"})
        parts[kept].chmod(mode)
        assert table.read().num_rows == 1_000


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (["400", "ExpiredToken"], "renew the credentials"),
        (["403", "AccessDenied"], "let this user, or these credentials, read it"),
        ([], "run this again when the storage answers"),
    ],
)
def test_object_store_that_refuses(answer: list[str], advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of an object store calls neither file nor log damaged, and is one line of advice by its answer."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("max_retries", "0")
    command = [sys.executable, "-m", "tests.pipeline.table.object_store", *answer]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as store, ExitStack() as stack:
        stack.callback(store.kill)
        assert store.stdout is not None
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.stdout.readline().strip())
        storage = Storage("s3://bucket/table")
        file = File(path="day=1/shard=0/a.parquet", day=1, shard=0, rows=1, size=9)
        for reading in (lambda: [*storage.batches(file, SCHEMA)], lambda: Table.open(storage.uri)):
            with pytest.raises(UnreachableTable) as raised:
                reading()
            text = str(raised.value)
            assert f"; {advice}" in text
            assert "damaged" not in text
            assert text.isprintable()


def test_a_storage_that_failed_once_is_not_called_damaged(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose bytes can be decoded a moment later is not damaged."""
    opened = iter([True])

    def flaky(source: object, columns: pa.Schema, *, ahead: bool) -> Iterator[pa.RecordBatch]:
        if next(opened, False):
            raise OSError("Corrupt snappy compressed data")
        return rows(source, columns, ahead=ahead)

    rows = storage_module._rows
    monkeypatch.setattr(storage_module, "_rows", flaky)
    with pytest.raises(UnreachableTable, match="run this again; if it fails again"):
        table.read()
    assert table.read().num_rows == 1_000


def test_a_message_holds_no_signature() -> None:
    """Errors of tables leave the signature of a store's address out, whatever raises them."""
    error = OSError("GET https://a.blob.core.windows.net/c/f?sv=1&sig=s3cret in 3ms\n\x1b[31m\u21b3\x1b[0m 403")
    assert plain(error) == "GET https://a.blob.core.windows.net/c/f in 3ms : 403"
    raised = (
        DamagedFile("t", "f", error),
        LostCommit("t", error),
        NotWritten("t", error),
        UnreachableTable("t", "f", error, "try again"),
        UnreadableTable("t", error),
    )
    assert all(plain(error) in str(each) for each in raised)


def test_a_damaged_log_is_an_error(table: Table) -> None:
    """A commit cut in the middle is not half read: the table says that its log is damaged."""
    commit = max(Path(table.storage.uri, "_delta_log").glob("*.json"))
    commit.write_bytes(commit.read_bytes()[:-40])
    with pytest.raises(UnreadableTable, match="_delta_log"):
        Table.open(table.storage.uri)


def test_rows_that_end_in_an_error_leave_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the source of rows fails, the files that were written for them are removed."""
    monkeypatch.setattr("quotascope.pipeline.table.table.CHUNK", 1_000)

    def broken() -> Iterator[pa.RecordBatch]:
        yield from batch(1).to_batches()
        raise ValueError("no more")

    files_before = _files(table)
    with pytest.raises(ValueError, match="no more"):
        append(table, "broken", broken())
    assert _files(table) == files_before
    assert table.version == 1


def test_an_error_after_the_commit_keeps_its_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are there, and reported as added, if only a step after the commit fails, such as a checkpoint."""
    commit = log.commit

    def failing(*arguments: Any) -> None:
        commit(*arguments)
        raise NotWritten(table.storage.uri, "no space for a checkpoint")

    monkeypatch.setattr(log, "commit", failing)
    assert append(table, "second", batch(1)) == 1_000
    assert amounts(table.read()) == list(range(2_000))


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    """A path below a file is refused with a message that names it."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotWritten, match="nothing was committed"):
        Table.create(str(tmp_path / "file" / "table"), SCHEMA, LAYOUT)


def test_a_file_made_of_files_of_another_group_is_not_for_its_own(tmp_path: Path) -> None:
    """A file of one group is not for another; a file for all users stays so."""
    storage = Storage(str(tmp_path))
    for name, mode in (("made", 0o664), ("of", 0o640), ("public", 0o644)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
        if name != "made" and os.geteuid() == 0:
            os.chown(tmp_path / name, -1, 12_345)
    target, source, public = (
        File(path=name, day=0, shard=0, rows=0, size=0, first_ms=None, last_ms=None)
        for name in ("made", "of", "public")
    )
    is_other_group = (tmp_path / "of").stat().st_gid != (tmp_path / "made").stat().st_gid
    storage.restrict(target, [public])
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o644
    storage.restrict(target, [source])
    assert (tmp_path / "made").stat().st_mode & 0o777 == (0o600 if is_other_group else 0o640)
