"""
Event logs in the forms in which vendors and people keep them.

Hourly files, zips, codecs, encodings, line ends and damage.
"""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from tests.builders.spark_events import application_ended, application_started, failures, log_started, written
from tests.spark_listener.recordings import NEWEST, VERSIONS, log_of

from quotascope.spark_listener.errors import CodecUnusable, EventLogError, NoEventLog
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.report import Application, document, page, read_application
from quotascope.spark_listener.report.report import log_end

START = application_started()
BEGIN = written([log_started(), START])
END = written([application_ended()])
WHOLE = BEGIN + failures(6) + END


def header(number: int, context: int = 7) -> bytes:
    """Return the line with which Databricks begins a file."""
    names = {"Spark Version": "3.1.2", "Timestamp": 1_000 + number, "Rollover Number": number}
    return written([{"Event": "DBCEventLoggingListenerMetadata", **names, "SparkContext Id": context}])


def write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    for name, data in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def counted(application: Application) -> tuple[int, bool, bool]:
    """Return the counts of a whole log of six failures."""
    failed = application.snapshot.failures[FailureCause.KAFKA_QUOTA]
    return failed, application.finished, application.counts_complete


HOURS = {
    "eventlog-2021-06-14--20-00.gz": gzip.compress(header(0) + BEGIN + failures(2)),
    "eventlog-2021-06-14--21-00.gz": gzip.compress(header(1) + failures(2, first_task=2)),
    "eventlog": header(2) + failures(2, first_task=4) + END,
}


@pytest.mark.parametrize("path", [".", *HOURS])
def test_hourly_files_of_databricks(path: str, tmp_path: Path) -> None:
    """
    The files are one log in the order of their hours, whichever of them is named.

    Other files beside them are no part of it.
    """
    write(tmp_path, {**HOURS, "databricks_pricing.json": b"{}", ".DS_Store": b"\0\0"})
    application = read_application(tmp_path / path)
    assert counted(application) == (6, True, True)
    assert not application.disordered


def test_files_of_databricks_deep_in_a_folder(tmp_path: Path) -> None:
    """Cluster log delivery puts them into folders of cluster, host and context, of which each is the only one."""
    write(tmp_path / "0601-182128-x/eventlog/0601-182128-x_10_0_0_7/3987391921526261116", HOURS)
    assert counted(read_application(tmp_path)) == (6, True, True)


@pytest.mark.parametrize(
    ("remaining", "missing"),
    [
        (["eventlog-2021-06-14--20-00.gz", "eventlog"], 1),
        (["eventlog-2021-06-14--21-00.gz", "eventlog"], 1),
        (["eventlog"], 2),
    ],
)
def test_hourly_files_that_are_missing(remaining: list[str], missing: int, tmp_path: Path) -> None:
    """The numbers in their first lines show how many are."""
    application = read_application(write(tmp_path, {name: HOURS[name] for name in remaining}))
    assert application.missing_files == missing
    assert not application.counts_complete


@pytest.mark.parametrize(
    "foreign", [header(2, 8) + failures(2, first_task=4) + END, written([{**START, "App ID": "app-2"}])]
)
def test_files_of_two_applications(foreign: bytes, tmp_path: Path) -> None:
    """The files are refused by name, not added up."""
    with pytest.raises(EventLogError, match=r"two applications.*(7 and 8|app-1 and app-2)"):
        read_application(write(tmp_path, {**HOURS, "eventlog": foreign}))


def zipped(path: Path, contents: Mapping[str, bytes], codec: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", codec) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


ROLLED = {
    "eventlog_v2_app-1/appstatus_app-1": b"",
    "eventlog_v2_app-1/events_1_app-1.zstd": zstandard.compress(BEGIN + failures(3)),
    "eventlog_v2_app-1/events_2_app-1": failures(3, first_task=3) + END,
}


@pytest.mark.parametrize(
    ("contents", "inner"),
    [
        ({"app-1": WHOLE}, ""),
        ({"app-1.zstd": zstandard.compress(WHOLE)}, ""),
        (ROLLED, ""),
        (ROLLED, "eventlog_v2_app-1"),
        ({f"download/{name}": data for name, data in ROLLED.items()}, ""),
        ({**HOURS, "__MACOSX/._eventlog": b"\0", ".DS_Store": b"\0"}, ""),
        ({f"a/b/{name}": data for name, data in HOURS.items()}, ""),
        ({"app-1_1": BEGIN, "app-1_2": WHOLE}, "app-1_2"),
    ],
)
@pytest.mark.parametrize("codec", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_download_of_the_history_server(contents: Mapping[str, bytes], inner: str, codec: int, tmp_path: Path) -> None:
    """A zip of one log is read, of a file or of several. A path into a zip of several attempts names one of them."""
    path = zipped(tmp_path / "eventLogs-app-1.zip", contents, codec)
    assert counted(read_application(path / inner)) == (6, True, True)


def test_zip_of_several_attempts(tmp_path: Path) -> None:
    """A zip of several attempts is refused with its logs and the way to name one."""
    path = zipped(tmp_path / "a.zip", {"app-1_1": BEGIN, "app-1_2": WHOLE})
    with pytest.raises(NoEventLog, match="holds 2 event logs, name one: app-1_1, app-1_2"):
        read_application(path)
    with pytest.raises(NoEventLog, match="holds no app-1_3"):
        read_application(path / "app-1_3")


def encrypted(data: bytes) -> bytes:
    """Set the flag of an encrypted file in both headers of a zip with one file."""
    central = data.index(b"PK\x01\x02")
    flagged = bytearray(data)
    flagged[6] |= 1
    flagged[central + 8] |= 1
    return bytes(flagged)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (encrypted, "is encrypted: unpack it first"),
        (lambda data: data[:-30], "a.zip is damaged"),
        (lambda data: data[:20] + b"\xff" * 40 + data[60:], "damaged"),
        (lambda _: b"PK\x03\x04" + b"\x07" * 500, "is damaged"),
    ],
)
def test_zip_that_cannot_be_read(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    """The reason is a sentence, never a traceback."""
    path = zipped(tmp_path / "a.zip", {"app-1": WHOLE})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(EventLogError, match=message):
        read_application(path)


def test_hostile_zips(tmp_path: Path) -> None:
    """Files that overlap, too many files, and zips in zips are refused before anything is unpacked."""
    path = zipped(tmp_path / "a.zip", {f"events_{n}_app-1": WHOLE for n in range(1, 40)}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    position = data.index(b"PK\x01\x02")
    while (position := data.find(b"PK\x01\x02", position)) >= 0:
        struct.pack_into("<II", data, position + 20, 10 * len(WHOLE), 10 * len(WHOLE))
        position += 4
    path.write_bytes(data)
    with pytest.raises(NoEventLog, match="its files overlap"):
        read_application(path)
    crowded = zipped(tmp_path / "b.zip", {f"{n}": b"" for n in range(20_001)}, zipfile.ZIP_STORED)
    with pytest.raises(NoEventLog, match="20,001 files"):
        read_application(crowded)
    inner = zipped(tmp_path / "d.zip", {"c.zip": zipped(tmp_path / "c.zip", {"app-1": WHOLE}).read_bytes()})
    with pytest.raises(CodecUnusable, match=r"c\.zip is a zip in a zip: unpack the outer one first"):
        read_application(inner)


def lz4(data: bytes) -> bytes:
    """Compress as LZ4BlockOutputStream does, in blocks of 32 kB and one that could not be made smaller."""
    codec, blocks = pa.Codec("lz4_raw"), []
    for begin in range(0, len(data), 32_768):
        piece = data[begin : begin + 32_768]
        packed, token = (piece, 0x15) if begin == 0 else (codec.compress(piece, asbytes=True), 0x25)
        blocks.append(b"LZ4Block" + bytes([token]) + struct.pack("<III", len(packed), len(piece), 0) + packed)
    return b"".join([*blocks, b"LZ4Block\x15" + bytes(12)])


def snappy(data: bytes) -> bytes:
    """Compress as SnappyOutputStream does."""
    codec, blocks = pa.Codec("snappy"), []
    for begin in range(0, len(data), 32_768):
        packed = codec.compress(data[begin : begin + 32_768], asbytes=True)
        blocks.append(struct.pack(">I", len(packed)) + packed)
    return b"".join([b"\x82SNAPPY\0" + struct.pack(">II", 1, 1), *blocks])


PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".lz4": lz4,
    ".snappy": snappy,
}


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_codecs(codec: str, version: str, tmp_path: Path, *, named: bool) -> None:
    """
    A decoder unpacks what its codec packs.

    A renamed file is known by its first bytes, and streams may follow each other.
    """
    whole = log_of(version, "plain").read_bytes()
    half = whole.index(b"\n", len(whole) // 2) + 1
    path = tmp_path / (f"app-1{codec}" if named else "app-1")
    path.write_bytes(PACKED[codec](whole[:half]) + PACKED[codec](whole[half:]))
    expected, application = read_application(log_of(version, "plain")), read_application(path)
    assert application.snapshot == expected.snapshot
    assert application.attempts == expected.attempts
    assert application.counts_complete
    assert application.finished


@pytest.mark.parametrize("codec", PACKED)
def test_damage(codec: str, tmp_path: Path) -> None:
    """
    The events before the damage are shown, as a lower bound, and the damage is named.

    So is a file that ends too early.
    """
    random_text = "".join(sha256(bytes([n])).hexdigest() for n in range(200)) * 6
    filler = written([{"Event": "SparkListenerJobStart", "Submission Time": 2_000, "Properties": {"x": random_text}}])
    begin, second = BEGIN + failures(3) + filler, failures(3, first_task=3) + filler + END
    good = PACKED[codec](begin)
    broken = bytearray(PACKED[codec](second))
    damage = 0 if codec in (".lz4", ".snappy") else len(broken) // 2
    broken[damage : damage + 8] = b"\xff" * 8
    path = tmp_path / "app-1"
    path.write_bytes(good + broken)
    application = read_application(path)
    assert 3 <= application.snapshot.failures[FailureCause.KAFKA_QUOTA] < 7
    assert not application.counts_complete
    assert len(application.damage) == 1
    assert str(path) in application.damage[0]
    for lost in (1, 15, 21):  # of lz4, 21 bytes are the block that closes a stream
        path.write_bytes(good + PACKED[codec](second)[:-lost])
        cut = read_application(path)
        assert cut.damage
        assert not cut.counts_complete
        assert cut.snapshot.events >= 3


def test_damage_in_a_rolled_file(tmp_path: Path) -> None:
    """Files after a damaged one of a rolled log are read."""
    parts = {**ROLLED, "eventlog_v2_app-1/events_2_app-1": b"\x28\xb5\x2f\xfd" + b"\xff" * 50}
    write(tmp_path, {**parts, "eventlog_v2_app-1/events_3_app-1": failures(3, first_task=6) + END})
    application = read_application(tmp_path / "eventlog_v2_app-1")
    assert counted(application) == (6, True, False)
    assert len(application.damage) == 1


def test_nothing_but_damage(tmp_path: Path) -> None:
    """A log with nothing but damage is an error, not an empty report."""
    (tmp_path / "a.zstd").write_bytes(b"\x28\xb5\x2f\xfd" + b"\xff" * 50)
    with pytest.raises(EventLogError, match=r"a\.zstd is damaged"):
        read_application(tmp_path / "a.zstd")


@pytest.mark.parametrize("content", [b"[" + WHOLE.replace(b"\n", b",")[:-1] + b"]", b"hello", b"[]"])
def test_one_line_that_is_no_event(content: bytes, tmp_path: Path) -> None:
    """A text without a line feed is not said to be a log that has no event yet; the begin of an event is."""
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(NoEventLog, match="is not an event log of Spark"):
        read_application(tmp_path / "a")
    (tmp_path / "a").write_bytes(WHOLE[:20])
    with pytest.raises(EventLogError, match="holds no event yet"):
        read_application(tmp_path / "a")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_other_encodings(encoding: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """A log in another encoding, such as PowerShell's UTF-16, is refused with a way to convert it."""
    (tmp_path / "a").write_bytes(pack(WHOLE.decode().encode(encoding)))
    with pytest.raises(NoEventLog, match="iconv -f UTF-16 -t UTF-8"):
        read_application(tmp_path / "a")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: b"\xef\xbb\xbf" + text, id="mark of UTF-8"),
        pytest.param(lambda text: text.replace(b"\n", b"\r\n"), id="Windows' line ends"),
        pytest.param(lambda text: text.replace(b"\n", b"\r"), id="old Macs' line ends"),
        pytest.param(lambda text: text.replace(b"\n", b"\r\n", 3), id="mixed line ends"),
        pytest.param(lambda text: text.replace(b"\n", b"\n\n \n"), id="blank lines"),
        pytest.param(lambda text: text.rstrip(), id="no line feed at the end"),
        pytest.param(lambda text: text.replace(b"}\n{", b"}{"), id="no line feed at all"),
        pytest.param(lambda text: text.replace(b'"a"', b'"caf\xe9"'), id="a name in another encoding"),
        pytest.param(lambda text: text.replace(b"\n", b"\n\xef\xbb\xbf"), id="marks of UTF-8 within"),
    ],
)
def test_line_ends(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Each event counts once, with any line ends."""
    (tmp_path / "app-1").write_bytes(change(WHOLE))
    application = read_application(tmp_path / "app-1")
    assert counted(application) == (6, True, True)
    assert application.ended - application.began == 59


@pytest.mark.parametrize(
    ("name", "cut", "end"),
    [
        ("app-1", -len(END), "without_end"),
        ("app-1", -20, "cut"),
        ("app-1", -1, "application"),
        ("app-1.inprogress", -20, "running"),
        ("app-1.inprogress", -len(END), "running"),
    ],
)
def test_how_a_log_ends(name: str, cut: int, end: str, tmp_path: Path) -> None:
    """A driver that was killed, a copy that was cut and an application that runs are three things."""
    (tmp_path / name).write_bytes(WHOLE[:cut])
    assert log_end(read_application(tmp_path / name)) == end


@pytest.mark.parametrize("lines", [0, 1, 99, 100])
def test_lines_before_the_log(lines: int, tmp_path: Path) -> None:
    """A log is recognized with other lines before it; after a hundred of those it is another file."""
    (tmp_path / "a").write_bytes(b"spark-submit: a line of another program\n" * lines + WHOLE)
    if lines == 100:
        with pytest.raises(NoEventLog, match="is not an event log of Spark"):
            read_application(tmp_path / "a")
    else:
        assert read_application(tmp_path / "a").unreadable_lines == lines


def test_log_without_any_time(tmp_path: Path) -> None:
    """A log without any time has no date, and not 1970."""
    (tmp_path / "a").write_bytes(written([log_started()]))
    application = read_application(tmp_path / "a")
    assert "1970" not in page(application)
    assert json.loads(json.dumps(document(application)))["began"] is None


def test_recorded_logs_in_a_zip(tmp_path: Path) -> None:
    """Real logs give the same figures in and out of a zip."""
    folder = log_of(NEWEST, "rolling")
    shutil.make_archive(str(tmp_path / "eventLogs"), "zip", folder.parent, folder.name)
    assert read_application(tmp_path / "eventLogs.zip").snapshot == read_application(folder).snapshot
