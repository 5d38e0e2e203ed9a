"""Releases of Kafka that a log names, and the notes that a table keeps of them."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.builders.requests import line

from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.pipeline.history import store
from quotascope.pipeline.ingest import IngestOptions, IngestTables
from quotascope.pipeline.releases import (
    Followed,
    KnownBy,
    Named,
    brokers_of,
    followed,
    followed_by,
    level_of,
    release_of_level,
    releases_since,
)
from quotascope.pipeline.runs.ingest import ingest_logs

HOUR = 3_600_000
NINE = 1_795_251_600_000
"""2026-11-21 09:00:00 UTC"""


def answer(hour: int, level: int) -> bytes:
    """An answer to ApiVersions of a broker of some level, on that day."""
    features = [{"name": "metadata.version", "minVersion": 7, "maxVersion": level}]
    header = {"requestApiKey": 18, "requestApiVersion": 4, "correlationId": hour}
    return line(
        time=f"2026-11-21 {hour:02}:00:00,000",
        header=header,
        response={"throttleTimeMs": 0, "supportedFeatures": features},
    )


def since(folder: Path, time: int) -> list[tuple[int, int]]:
    requests = IngestTables.create(str(folder)).requests
    return [(each.major, each.minor) for each in releases_since(requests.last_epoch, time)]


def test_releases_are_kept_with_the_table(tmp_path: Path) -> None:
    """
    A table keeps the last time of each release, whatever is read later or again, merged or dropped.

    The newest comes first.
    """
    log, folder = tmp_path / "a.log", tmp_path / "usage"
    for lines in ([answer(9, 33), answer(11, 30)], [answer(8, 33), answer(9, 33), answer(10, 29)], [line()]):
        log.write_bytes(b"\n".join(lines))
        ingest_logs([str(log)], str(folder), IngestOptions(broker="1"))
    for table in store.tables_of(str(folder)).values():
        table.compact()
    assert since(folder, NINE - 1_000) == [(4, 4), (4, 3), (4, 2)]
    assert since(folder, NINE + HOUR) == [(4, 3)]
    assert since(folder, NINE + 5 * HOUR) == [(4, 3)]


def test_a_table_that_knows_no_release(tmp_path: Path) -> None:
    """The release is unknown if no answer named one, or only one before KRaft did."""
    log, folder = tmp_path / "a.log", tmp_path / "usage"
    log.write_bytes(b"\n".join([line(), answer(9, 3)]))
    ingest_logs([str(log)], str(folder), IngestOptions(broker="1"))
    assert since(folder, 0) == []


@pytest.mark.parametrize("name", ["metadata.version", "kraft.version"])
def test_only_brokers_name_a_level(name: str) -> None:
    """Text that a client writes into its request is quoted, and other features have levels of their own."""
    hostile = line(header={"clientId": '"name":"metadata.version","minVersion":1,"maxVersion":99'})
    assert level_of(hostile) is None
    text = answer(9, 30).replace(b"metadata.version", name.encode())
    assert level_of(text) == (30 if name == "metadata.version" else None)
    assert KafkaRelease.of_metadata_version(30) == KafkaRelease(4, 3)


APIS_OF_3_5 = {0: 9, 1: 15, 2: 8, 3: 12, 4: 7, 24: 3, 35: 4}


def apis(hour: int, newest: dict[int, int], broker_port: int = 9092, error: int = 0) -> bytes:
    """An answer to ApiVersions of a broker in ZooKeeper mode, which names no feature."""
    keys = [{"apiKey": key, "minVersion": 0, "maxVersion": version} for key, version in newest.items()]
    return line(
        time=f"2026-11-21 {hour:02}:00:00,000",
        header={"requestApiKey": 18, "requestApiVersion": 3, "correlationId": hour},
        response={"errorCode": error, "apiKeys": keys, "throttleTimeMs": 0},
        connection=f"10.0.0.1:{broker_port}-10.0.0.9:4444-1",
    )


def test_brokers_in_zookeeper_mode_show_their_release_by_their_apis() -> None:
    """An answer with versions of ApiVersions alone names no release, nor does a client that writes such a text."""
    level = level_of(apis(9, APIS_OF_3_5))
    assert level is not None
    assert release_of_level(level) == KafkaRelease(3, 5, zookeeper=True)
    assert level_of(apis(9, {18: 3}, error=35)) is None
    assert level_of(apis(9, {key: number for key, number in APIS_OF_3_5.items() if key != 4})) is None
    assert level_of(line(header={"clientId": '"response":{"errorCode":0,"apiKeys":[{"apiKey":1,'})) is None


def test_each_broker_follows_its_own_release(tmp_path: Path) -> None:
    """In a cluster under upgrade the newest release is the controller's, and the others are named."""
    folder = tmp_path / "usage"
    logs = {"b1.log": apis(9, APIS_OF_3_5), "b2.log": apis(10, {**APIS_OF_3_5, 0: 11, 1: 17})}
    for name, text in logs.items():
        (tmp_path / name).write_bytes(text)
    ingest_logs(
        [str(tmp_path / name) for name in logs], str(folder), IngestOptions(broker_pattern=r"(?P<broker>b\d)\.log")
    )
    history = store.History.open(str(folder)).detail
    followed_release = followed_by(str(folder), history, Followed())
    assert followed_release.release == KafkaRelease(3, 9, zookeeper=True)
    assert followed_release.also_named == (KafkaRelease(3, 5, zookeeper=True),)
    assert brokers_of(history, history.files()) == {"b1", "b2"}
    assert followed_release.by_broker == {"b1": KafkaRelease(3, 5, zookeeper=True)}
    assert followed_release.release_of("b2") == followed_release.release
    assert "(the newest that it names; broker b1 is replayed as of 3.5 in ZooKeeper mode)" in followed_release.note
    assert followed_by(str(folder), history, followed(KafkaRelease(4, 0))).by_broker == {}


def test_a_level_that_is_not_known_is_said() -> None:
    """An unknown level counts as the newest release, and the report says that its changes are not in the figures."""
    named = Named.of(pa.array(["b"]), pa.array([NINE]), pa.array([99], pa.int32()))
    assert named.newer == NINE
    note = Followed().unless_log([KafkaRelease(4, 4)], is_newer=True).note
    assert "newer than 4.4, which is not known here" in note


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3.4", "stores controller mutation quotas and does not enforce them"),
        ("2.8", "quota.producer.default"),
        ("3.10", "was not compared with this engine, which is exact for 3.3 to 4.4, and 2.8 to 3.9 in ZooKeeper mode"),
    ],
)
def test_what_a_release_does_not_do_is_said(version: str, words: str) -> None:
    """A note says that a release does not enforce mutation quotas, and one that does has no such note."""
    assert words in followed(KafkaRelease.parse(version)).note
    assert words not in followed(KafkaRelease(4, 4)).note


def test_names_of_brokers_are_untrusted() -> None:
    """Hostile names of brokers stay on one line, are cut, and only some of them are listed."""
    old = KafkaRelease(3, 7)
    brokers = dict.fromkeys([f"b\n{number}" + "x" * 10_000 for number in range(9)], old)
    note = Followed(release=KafkaRelease(3, 9), known_by=KnownBy.LOG, also_named=(old,), by_broker=brokers).note
    assert note.isprintable()
    assert "and 4 more brokers are replayed as of 3.7" in note
    assert len(note) < 1_000
