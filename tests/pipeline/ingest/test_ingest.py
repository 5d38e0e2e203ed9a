"""Request logs into tables, by one process: every line once, whatever is read again."""

import datetime as dt
import gzip
import io
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders.requests import line, mutation, topic
from tests.pipeline.ingest.ingesting import LINES, NAMED, PLAIN, log, read, reported, tables
from tests.pipeline.log_lines import CAPTURE, values
from tests.pipeline.privileges import open_folder, without_privileges
from tests.strategies import examples

from quotascope.pipeline.columns import Numbers, by_number
from quotascope.pipeline.errors import BadOption, BadSnapshot, UnreadableLog
from quotascope.pipeline.history import History, store
from quotascope.pipeline.ingest import IngestOptions, IngestTables, committing, ingest, local
from quotascope.pipeline.ingest.files import LINK_OUT, as_private_as, log_files
from quotascope.pipeline.request_log import parsing
from quotascope.pipeline.request_log.line import LineReader
from quotascope.pipeline.runs import ingest as runs
from quotascope.pipeline.runs.ingest import ingest_logs


def test_a_real_log_is_read_once(tmp_path: Path) -> None:
    """
    A real log is read but for second lines of forwarded requests.

    A copy, a part or another compression adds nothing.
    """
    report = read(tmp_path, str(CAPTURE))
    assert (report.read, report.kept, report.forwarded) == (5_403, 5_395, 8)
    requests, quarantine = tables(tmp_path)
    assert (len(requests), len(quarantine)) == (5_395, 0)
    assert set(requests["file"].to_pylist()) == {str(CAPTURE)}
    part = log(tmp_path, *LINES[100:200])
    packed = tmp_path / "b.log.zst"
    packed.write_bytes(zstandard.compress(b"\n".join(LINES)))
    report = read(tmp_path, str(CAPTURE), part, str(packed))
    assert (report.kept, report.quarantined) == (0, 0)
    assert report.duplicates + report.forwarded + report.repeated == 2 * 5_403 + 100
    assert len(tables(tmp_path)[0]) == 5_395


def test_a_file_that_grows_and_is_renamed(tmp_path: Path) -> None:
    """
    A renamed and grown file adds only new lines.

    Half a line at its old end becomes a whole one, and a line that cannot be read is still the same.
    """
    path = Path(log(tmp_path, *PLAIN[:49], PLAIN[0], b"junk", PLAIN[50]))
    path.write_bytes(path.read_bytes()[:-300])
    first = read(tmp_path, str(path))
    assert (first.kept, first.repeated, first.reasons) == (49, 1, Counter({"truncated": 1, "not a request": 1}))
    log(tmp_path, *PLAIN[:49], b"junk", *PLAIN[49:60])
    path.rename(tmp_path / "a.log.1")
    second = read(tmp_path, str(tmp_path / "a.log.1"), log(tmp_path, *PLAIN[60:70]))
    assert (second.kept, second.duplicates, second.repeated) == (21, 49, 0)
    assert (second.quarantined, second.quarantined_before) == (0, 1)


@pytest.mark.slow
def test_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small chunks make the same tables as large ones; twins and duplicates are found across them."""
    monkeypatch.setattr(local, "CHUNK", 100)
    monkeypatch.setattr(local, "COMPRESSED_BLOCK", 2_000)
    monkeypatch.setattr(committing, "REMEMBERED", 150)
    twice = [text for number, text in enumerate(LINES[:600]) for _ in range(1 + (number % 7 == 0))]
    twice += LINES[:350]
    path = log(tmp_path, *twice, b"junk")
    packed = tmp_path / "p.gz"
    packed.write_bytes(gzip.compress(Path(path).read_bytes()))
    report = read(tmp_path, str(packed))
    monkeypatch.undo()
    ingest([path], str(tmp_path / "whole"), NAMED)
    expected = IngestTables.create(str(tmp_path / "whole")).requests.read()
    assert (report.kept, report.forwarded) == (593, 7 + 7)
    assert reported(tables(tmp_path)[0]) == reported(expected)


def test_empty_input(tmp_path: Path) -> None:
    """Empty files, compressed or not, are no error and no commit; the tables are there."""
    files = {"a.log": b"", "b.log.gz": gzip.compress(b""), "c": b"\n\n"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    report = read(tmp_path, *(str(tmp_path / name) for name in files))
    assert report.reasons == Counter({"empty": 2})
    assert (report.read, report.quarantined, report.quarantined_before) == (2, 2, 0)
    assert [len(table) for table in tables(tmp_path)] == [0, 1]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_truncated_compression(tmp_path: Path, compress: Any) -> None:
    """
    A file that breaks off counts for nothing, as its lines may be altered.

    The report says which file and why, and the complete file adds all.
    """
    path = tmp_path / "a.log.gz"
    whole = compress(b"\n".join(PLAIN[:1_000]) + b"\n")
    path.write_bytes(whole[: len(whole) * 2 // 3])
    report = read(tmp_path, str(path), log(tmp_path, line()))
    assert list(report.broken) == [str(path)]
    assert "damaged or ends too early" in report.broken[str(path)]
    assert report.kept == 1
    path.write_bytes(whole)
    assert read(tmp_path, str(path)).broken == {}
    assert len(tables(tmp_path)[0]) == 1_000 + 1


def test_damaged_member(tmp_path: Path) -> None:
    """A member with an altered byte adds no rows, which would count twice with the good file. Whole members count."""
    path = tmp_path / "a.log.gz"
    members = [gzip.compress(b"\n".join(PLAIN[start : start + 500]) + b"\n", 0) for start in (0, 500)]
    damaged = bytearray(members[1])
    place = damaged.index(b'"clientId":"') + 13
    damaged[place] ^= 1
    path.write_bytes(members[0] + damaged)
    report = read(tmp_path, str(path))
    assert (report.kept, list(report.broken)) == (500, [str(path)])
    path.write_bytes(b"".join(members))
    assert read(tmp_path, str(path)).kept == 500
    assert len(tables(tmp_path)[0]) == 1_000
    assert len(tables(tmp_path)[1]) == 0


def test_missing_file(tmp_path: Path) -> None:
    """If one of the paths does not exist, no file is read."""
    with pytest.raises(UnreadableLog, match=r"none\.log: there is no such file"):
        read(tmp_path, log(tmp_path, line()), str(tmp_path / "none.log"))
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize("mode", [0, 0o444])
def test_what_may_not_be_read_is_named(mode: int) -> None:
    """
    A log in a folder without permission is not called missing.

    Such a folder within another one is left out, with the reason.
    """
    with open_folder() as folder:
        inside = Path(log(folder / "closed", line()))
        whole = log(folder, line())
        link = folder / "archive"
        link.symlink_to(inside.parent / "deeper")
        inside.parent.chmod(mode)
        with without_privileges():
            for path in (inside, inside.parent):
                with pytest.raises(UnreadableLog, match=rf"{path.name}: it cannot be read: Permission denied"):
                    log_files([str(path)])
            files_found = log_files([str(folder)], "*.log")
        inside.parent.chmod(0o755)
    assert files_found == ([whole], dict.fromkeys((str(inside.parent), str(link)), "Permission denied"))


def test_folder(tmp_path: Path) -> None:
    """
    A folder's files with fitting names are read, in subfolders too; hidden files are not.

    A pattern finds the broker in the path; a file that it does not fit is refused before any is read.
    """
    for number, name in enumerate(["broker-17/1.log", "x/2.txt", "y.log", ".z.log", "_t/3.log"]):
        log(tmp_path / "logs", line(header={"correlationId": number}), name=name)
    options = IngestOptions(names="*.log", broker_pattern="/broker-([0-9]+)/")
    with pytest.raises(BadOption, match=r"finds no broker's name in '.*/y\.log'"):
        read(tmp_path, str(tmp_path / "logs"), options=options)
    assert not (tmp_path / "tables").exists()
    options = IngestOptions(names="*.log", broker_pattern="/broker-(?P<broker>[0-9]+)/|/(y)\\.log")
    with pytest.raises(BadOption, match=r"finds no broker's name in '.*/y\.log'"):
        read(tmp_path, str(tmp_path / "logs"), options=options)
    options = IngestOptions(names="*.log", broker_pattern="/(?:broker-|(?=y))(?P<broker>[0-9]+|y)")
    assert read(tmp_path, str(tmp_path / "logs"), options=options).kept == 2
    assert set(values(tables(tmp_path)[0], "broker")) == {"17", "y"}
    with pytest.raises(UnreadableLog, match=r"no file in this folder is called \*.gz"):
        read(tmp_path, str(tmp_path / "logs"), options=IngestOptions(names="*.gz"))


def test_names_that_are_no_utf_8(tmp_path: Path) -> None:
    """A file whose name is no UTF-8 is read as any other, and is named with its bytes escaped."""
    for number, name in enumerate([b"caf\xe9.log", b"whole.log", b"cut\xff.gz"]):
        content = line(header={"correlationId": number}) + b"\njunk\n"
        (tmp_path / "logs").mkdir(exist_ok=True)
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/logs/" + name)).write_bytes(
            gzip.compress(content)[:-1] if name.endswith(b"gz") else content
        )
    options = IngestOptions(broker_pattern=r"/([^/]+)\.(?:log|gz)$")
    report = read(tmp_path, str(tmp_path / "logs"), options=options)
    assert (report.kept, report.quarantined) == (2, 2)
    assert set(values(tables(tmp_path)[0], "broker")) == {r"caf\xe9", "whole"}
    assert list(report.broken) == [str(tmp_path / "logs" / r"cut\xff.gz")]


def test_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Standard input is read, compressed or not.

    And a pipe that has a path, as of a shell's process substitution, to its end, and not again.
    """
    for content in (b"\n".join(PLAIN[:10]), gzip.compress(b"\n".join(PLAIN[:20]))):
        raw = io.BufferedReader(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
        read(tmp_path, "-")
    assert values(tables(tmp_path)[0], "file") == ["-"] * 20
    path = tmp_path / "pipe"
    os.mkfifo(path)
    Thread(target=path.write_bytes, args=(b"\n".join(PLAIN[20:30]),)).start()
    report = read(tmp_path, str(path))
    assert (report.kept, report.broken) == (10, {})


def test_dropped_days_stay_away(tmp_path: Path) -> None:
    """
    Rows that retention dropped are not added again from the same logs, so that the sums, which stay, are not doubled.

    New days are added.
    """
    folder = str(tmp_path / "tables")
    days = [
        [
            mutation("create", [topic(f"t{day}", 3)], time=f"2026-11-{day} 23:59:59,990"),
            line(time=f"2026-11-{day} 00:00:00,100"),
        ]
        for day in (19, 20, 21, 22)
    ]  # fmt: skip
    path = log(tmp_path, *(text for day in days[:3] for text in day))
    assert read(tmp_path, path).kept == 6
    history = History.create(folder)
    history.update(IngestTables.create(folder).requests)
    sums = history.seconds.read()
    for table in (IngestTables.create(folder).requests, history.detail):
        table.drop_before(dt.date(2026, 11, 21))
    assert len(tables(tmp_path)[0]) == 2
    again = read(tmp_path, path)
    assert (again.kept, again.duplicates) == (0, 6)
    assert history.update(IngestTables.create(folder).requests) == 0
    assert history.seconds.read() == sums
    report = read(tmp_path, log(tmp_path, *(text for day in days for text in day)))
    assert (report.kept, report.duplicates) == (2, 6)


def test_snapshot_and_earlier_runs(tmp_path: Path) -> None:
    """Partitions come from a snapshot, and from creates that an earlier run has read."""
    create = mutation("create", [topic("made", 7)], time="2026-11-21 08:00:00,000")
    read(tmp_path, log(tmp_path, create))
    deletes = [mutation("delete", [{"name": name}], number=n) for n, name in enumerate(["made", "é\n", "unknown"])]
    snapshot = tmp_path / "topics.json"
    snapshot.write_text('{"é\\n": 5}')
    read(tmp_path, log(tmp_path, *deletes), options=IngestOptions(snapshot=str(snapshot), broker="1"))
    deleted = [row for row in tables(tmp_path)[0].to_pylist() if row["api_key"] == 20]
    reported = {row["correlation_id"]: (row["mutations_charged"], row["mutations_known"]) for row in deleted}
    assert reported == {0: (7, True), 1: (5, True), 2: (None, False)}


@pytest.mark.parametrize("text", ["", "[]", '{"a": "3"}', '{"a": 1.5}', '{"a": -1}', '{"a": 2147483648}', "a: 3", None])
def test_not_a_snapshot(tmp_path: Path, text: str | None) -> None:
    """A snapshot that is missing, or no object of topics and numbers, is refused with its name and an example."""
    path = tmp_path / "topics.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadSnapshot, match=r'topics.json.*"orders": 12'):
        read(tmp_path, options=IngestOptions(snapshot=str(path)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zone": "Mars/Base"}, "not a zone; use a name such as Europe/Berlin"),
        ({"zone": "../etc/passwd"}, "not a zone"),
        ({"broker_pattern": "("}, "the broker pattern"),
        ({"broker_pattern": "broker"}, "needs one group"),
        ({"broker": "1", "broker_pattern": "(1)"}, "not both"),
    ],
)
def test_options_without_sense(options: dict[str, Any], message: str) -> None:
    """A wrong option is reported at once, before anything is read."""
    with pytest.raises(BadOption, match=message):
        IngestOptions(**options)


def test_options_are_sent_to_workers() -> None:
    """Options work the same after they are sent to another process."""
    # ours
    options = pickle.loads(pickle.dumps(IngestOptions(broker_pattern="b-([0-9])", zone="Asia/Tokyo")))  # noqa: S301
    source = options.source("x/b-3/log")
    assert (source.broker, str(source.zone)) == ("3", "Asia/Tokyo")
    with pytest.raises(BadOption, match="finds no broker's name in 'x'"):
        options.source("x")
    assert options.topics() == {}


def test_hostile_names_make_no_paths(tmp_path: Path) -> None:
    """Untrusted names are values only: below the tables there are days and numbers."""
    names = ["../../x", "a/b", "day=1", "\n", "é" * 5_000, "", "%2e%2e", "CON", "x\x00y"]
    texts = [
        line(principal=f"User:{name}", header={"clientId": name, "correlationId": number})
        for number, name in enumerate(names)
    ]  # fmt: skip
    read(tmp_path, log(tmp_path, *texts))
    assert Counter(tables(tmp_path)[0]["user"].to_pylist()) == Counter(names)
    written = [path.relative_to(tmp_path / "tables") for path in (tmp_path / "tables").rglob("*")]
    assert all(part.isascii() and len(part) < 120 for path in written for part in path.parts)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(
    st.lists(
        st.one_of(
            st.sampled_from(LINES[:30]),
            st.sampled_from([text for text in LINES if b'"isForwarded":true' in text]),
            st.sampled_from([b"", b"junk", LINES[3][:200], line(principal=3)]),
        ),
        max_size=25,
    )
)
def test_counts_balance(texts: list[bytes]) -> None:
    """Whatever lines come, and come again, each is counted once."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as name:
        folder = Path(name)
        patch.setattr(local, "CHUNK", 7)
        patch.setattr(local, "BLOCK", 2_000)
        path = log(folder, *texts)
        first = read(folder, path)
        again = read(folder, path)
        assert first.read == again.read == len(texts)
        assert (again.kept, again.quarantined) == (0, 0)
        requests, quarantine = tables(folder)
        assert len(requests) == first.kept
        assert (
            len(quarantine)
            == len({text for text in texts if text in set(values(quarantine, "text"))})
            <= first.quarantined
        )


def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is the bytes read, of all, after each file and block; compressed files count as they lie on disk."""
    paths = [log(tmp_path, line(), name="a"), log(tmp_path, line(), line(), name="b")]
    reported: list[tuple[int, int]] = []
    ingest(paths, str(tmp_path / "tables"), NAMED, progress=lambda *each: reported.append(each))
    size = len(line()) + 1
    assert list(dict.fromkeys(reported)) == [(0, 3 * size), (size, 3 * size), (3 * size, 3 * size)]
    monkeypatch.setattr(local, "COMPRESSED_BLOCK", 1_000)
    monkeypatch.setattr(local, "HELD", 1_000)
    packed = tmp_path / "p.gz"
    packed.write_bytes(gzip.compress(b"\n".join(LINES[:100]), 1))
    reported.clear()
    ingest([str(packed)], str(tmp_path / "tables"), NAMED, progress=lambda *each: reported.append(each))
    whole = packed.stat().st_size
    assert len({done for done, _ in reported}) > whole / 2_000
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert (reported[0], reported[-1]) == ((0, whole), (whole, whole))


def test_millions_of_empty_lines_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of a small compressed file is counted line by line, and parsed once for each text of a block."""
    looked: list[bytes] = []
    row = LineReader.row

    def noted(reader: LineReader, text: bytes) -> Any:
        looked.append(text)
        return row(reader, text)

    monkeypatch.setattr(LineReader, "row", noted)
    packed = tmp_path / "a.gz"
    junk = b"\n" * 700_000 + b"junk\n" * 100_000 + line() + b"\n" + b"junk\n"
    packed.write_bytes(gzip.compress(junk))
    assert packed.stat().st_size < 3_000
    report = read(tmp_path, str(packed))
    assert set(looked) == {b"", b"junk", line()}
    assert len(looked) < 3 + 2 * len(junk) / local.COMPRESSED_BLOCK
    assert (report.read, report.kept, report.quarantined) == (800_002, 1, 800_001)
    assert len(tables(tmp_path)[1]) == 2
    assert tables(tmp_path)[0]["line"].to_pylist() == [800_001]
    again = read(tmp_path, str(packed))
    assert (again.duplicates, again.quarantined_before) == (1, 800_001)


def test_junk_that_comes_again_has_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quarantine says for how many lines a text stands; long texts are looked at each time."""
    monkeypatch.setattr(parsing, "SHORT", 3)
    texts = [b"aaaa", b"aaa", b"b", b"c", b"aaa", b"c", None, b"aaaa"]
    files_found = parsing.parse_lines(texts, range(8), parsing.LogSource(file="a")).quarantine
    assert files_found["line"].to_pylist() == [0, 1, 2, 3, 6, 7]
    assert files_found["lines"].to_pylist() == [1, 2, 1, 2, 1, 1]


def test_chunks_are_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Chunks are small where client ids have 32,000 bytes.

    As many rows are held at once as have the bytes of a chunk, here and in the history, and so do readers of its files.
    """
    monkeypatch.setattr(local, "CHUNK_BYTES", 1 << 20)
    for place in ("table.CHUNK_BYTES", "storage.GROUP_BYTES"):
        monkeypatch.setattr(f"quotascope.pipeline.table.{place}", 1 << 19)
    monkeypatch.setattr(local, "BLOCK", 1 << 18)
    held: list[int] = []

    def noted(rows: pa.Table, numbers: Numbers) -> Any:
        held.append(rows.nbytes)
        return by_number(rows, numbers)

    monkeypatch.setattr("quotascope.pipeline.table.table.by_number", noted)
    texts = [line(header={"clientId": f"{n}{'x' * 32_000}", "correlationId": n}) for n in range(200)]
    assert read(tmp_path, log(tmp_path, *texts)).kept == 200
    requests = IngestTables.create(str(tmp_path / "tables")).requests
    assert requests.version >= 4, "a commit for each chunk"
    history = History.create(str(tmp_path / "tables"))
    assert history.update(requests) == 200
    assert max(held) < 1 << 20
    assert len(held) > 200 * 32_000 / (1 << 20)
    for table in (requests, history.detail, history.seconds):
        for file in table.files():
            batches = list(table.batches([file]))
            assert max(batch.nbytes for batch in batches) < (1 << 19) + 70_000
        table.compact()
        files = list(table.shards().values())
        merged = [batch.nbytes for of_shard in files for batch in table.batches(of_shard)]
        assert max(merged) < (1 << 19) + 70_000
    assert len(history.detail.read()) == 200


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    """Links out of a folder are followed only on request; a link within it, or one that is named itself, always."""
    logs, secret = tmp_path / "logs", tmp_path / "secret"
    for number, place in enumerate((logs / "a.log", secret / "b.log", secret / "c.txt")):
        log(place.parent, line(header={"correlationId": number}), name=place.name)
    (logs / "link.log").symlink_to(secret / "b.log")
    (logs / "link.txt").symlink_to(secret / "c.txt")
    (logs / "folder").symlink_to(secret)
    (logs / "round").symlink_to(logs)
    (logs / "within.log").symlink_to("a.log")
    (logs / "nowhere.log").symlink_to("nothing")
    (logs / "loop.log").symlink_to("loop.log")
    (logs / "long.log").symlink_to("x" * 300)
    only = IngestOptions(names="*.log", broker="1")
    report = read(tmp_path, str(logs), options=only)
    assert (report.kept, report.repeated) == (1, 1)
    assert report.left_out == {str(logs / name): LINK_OUT for name in ("link.log", "folder")}
    with pytest.raises(UnreadableLog, match=r"no file in this folder is called \*\.txt; .*link\.txt: a link out"):
        read(tmp_path, str(logs), options=IngestOptions(names="*.txt"))
    by_uri = ingest_logs([f"file://{logs}"], str(tmp_path / "usage"), only)
    assert by_uri.left_out == report.left_out
    expected = read(tmp_path, str(logs), options=IngestOptions(names="*.log", broker="1", follow_links=True))
    assert (expected.read, expected.kept, expected.left_out) == (4, 1, {})
    named, _ = log_files([str(logs / "link.txt"), str(logs / "folder")], "*.txt")
    assert named == [str(logs / "link.txt"), str(logs / "folder" / "c.txt")]


@pytest.fixture
def _umask() -> Iterator[None]:
    """Set the usual umask, and require it at the end of each test."""
    umask = os.umask(0o022)
    yield
    assert os.umask(umask) == 0o022


@pytest.mark.parametrize(
    ("modes", "others", "group"),
    [((0o644,), True, True), ((0o644, 0o640), False, True), ((0o600,), False, False), ((0o644, 0o604), True, True)],
)
@pytest.mark.usefixtures("_umask")
def test_tables_are_as_private_as_the_logs(
    tmp_path: Path, modes: tuple[int, ...], *, others: bool, group: bool
) -> None:
    """
    Users without permission for one of the logs have none for its tables, merged files included.

    The process's umask is as before.
    """
    paths = [log(tmp_path, line(header={"correlationId": mode}), name=f"{mode}.log") for mode in modes]
    for path, mode in zip(paths, modes, strict=True):
        Path(path).chmod(mode)
    into = str(tmp_path / "usage")
    ingest_logs(paths, into, NAMED)
    assert os.umask(0o022) == 0o022
    ingest_logs([log(tmp_path, line(header={"correlationId": 1}), name="more.log")], into, NAMED)
    for table in store.tables_of(into).values():
        table.compact()
    files_found = store.tables_of(into)["history"]
    (file,) = files_found.files()
    for place in (file.path, "..", f"_delta_log/{0:020d}.json"):
        mode = Path(files_found.storage.uri, place).stat().st_mode
        assert (bool(mode & 0o007), bool(mode & 0o070)) == (others, group), place


@pytest.mark.usefixtures("_umask")
def test_what_a_killed_run_left_stays_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of a killed run of private logs stay private when a later run adds them with public logs."""
    private = log(tmp_path, line(), name="private.log")
    public = log(tmp_path, line(principal="User:bob"), name="public.log")
    Path(private).chmod(0o600)
    into = str(tmp_path / "usage")
    with monkeypatch.context() as killed:
        killed.setattr(History, "update", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ingest_logs([private], into, NAMED)
    ingest_logs([public], into, NAMED)
    for name, table in store.tables_of(into).items():
        for file in table.files() if name != "quarantine" else ():
            users = table.read(["user"], files=[file])["user"].to_pylist()
            mode = Path(table.storage.uri, file.path).stat().st_mode & 0o777
            assert "alice" not in users or mode == 0o600, (name, users)


@pytest.mark.usefixtures("_umask")
def test_a_log_that_is_rotated_away_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was rotated away is in the report, the others are read, and the umask is as before."""
    missing_log, existing_log = str(tmp_path / "gone.log"), log(tmp_path, line())
    listed: Any = ([missing_log, existing_log], {})
    monkeypatch.setattr(runs, "log_files", lambda *_, **__: listed)
    monkeypatch.setattr(local, "log_files", lambda *_, **__: listed)
    report = ingest_logs([str(tmp_path)], str(tmp_path / "usage"), NAMED)
    assert (report.kept, list(report.broken)) == (1, [missing_log])


@pytest.mark.usefixtures("_umask")
def test_two_threads_do_not_undo_each_others_privacy(tmp_path: Path) -> None:
    """A run of public logs does not open files that another thread is writing from private ones."""
    public, private = (log(tmp_path, line(), name=name) for name in ("a.log", "b.log"))
    Path(private).chmod(0o600)
    inside, done = Event(), Event()
    inner: list[int] = []

    def hide() -> None:
        with as_private_as([private]):
            inside.set()
            done.wait(30)
            inner.append(os.umask(0o077))

    def show() -> None:
        with as_private_as([public]):
            pass
        done.set()

    hiding, showing = Thread(target=hide), Thread(target=show)
    with as_private_as([public]):
        hiding.start()
        assert not inside.wait(0.2)
    assert inside.wait(30)
    showing.start()
    assert not done.wait(0.2)
    done.set()
    hiding.join()
    showing.join()
    assert inner == [0o077]


@pytest.mark.usefixtures("_umask")
def test_groups_of_others_are_no_group_of_mine(tmp_path: Path) -> None:
    """New files of a log of another group have no permission for our own group."""
    path = Path(log(tmp_path, line()))
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, -1, 12_345)
    with as_private_as([str(path)]):
        inner = os.umask(0o077)
    own_group = path.stat().st_gid == os.getegid()
    assert inner == (0o027 if own_group else 0o077)
