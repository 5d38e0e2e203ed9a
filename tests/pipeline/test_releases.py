"""Which releases of Kafka a log names, and what a table keeps of it."""

from pathlib import Path

import pytest
from tests.pipeline.log_lines import line

from quotascope.metrics import KafkaRelease
from quotascope.pipeline.history import store
from quotascope.pipeline.ingest import IngestOptions, IngestTables
from quotascope.pipeline.releases import level_of, releases_since
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
    """When each was named last, whatever is read later or again, merged or dropped; the newest comes first."""
    log, folder = tmp_path / "a.log", tmp_path / "usage"
    for lines in ([answer(9, 33), answer(11, 30)], [answer(8, 33), answer(9, 33), answer(10, 29)], [line()]):
        log.write_bytes(b"\n".join(lines))
        ingest_logs([str(log)], str(folder), IngestOptions())
    for table in store.tables_of(str(folder)).values():
        table.compact()
    assert since(folder, NINE - 1_000) == [(4, 4), (4, 3), (4, 2)]
    assert since(folder, NINE + HOUR) == [(4, 3)]
    assert since(folder, NINE + 5 * HOUR) == [(4, 3)]


def test_a_table_that_knows_no_release(tmp_path: Path) -> None:
    """No answer named one, or one before KRaft did."""
    log, folder = tmp_path / "a.log", tmp_path / "usage"
    log.write_bytes(b"\n".join([line(), answer(9, 3)]))
    ingest_logs([str(log)], str(folder), IngestOptions())
    assert since(folder, 0) == []


@pytest.mark.parametrize("name", ["metadata.version", "kraft.version"])
def test_only_brokers_name_a_level(name: str) -> None:
    """What a client writes into its request is quoted, and other features have levels of their own."""
    hostile = line(header={"clientId": '"name":"metadata.version","minVersion":1,"maxVersion":99'})
    assert level_of(hostile) is None
    text = answer(9, 30).replace(b"metadata.version", name.encode())
    assert level_of(text) == (30 if name == "metadata.version" else None)
    assert KafkaRelease.of_metadata_version(30) == KafkaRelease(4, 3)
