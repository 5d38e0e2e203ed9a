"""The logs of real brokers of two releases, whose real clients run into their quotas, are predicted."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.cluster.cluster import Cluster, Layout, Plugin, running
from tests.cluster.throttled import LOWER, Limits, Recording, record, record_beyond_a_month, record_work
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tools.replay_check import Check, check, log_of, rules_of_text

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.pipeline.history import history_of
from quotascope.pipeline.ingest.options import IngestOptions
from quotascope.pipeline.releases import followed
from quotascope.pipeline.replay import Mode, ReplaySettings, replay
from quotascope.pipeline.request_log.mutations import MutationLedger
from quotascope.pipeline.runs.episodes import find_episodes
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.whatif import what_if
from quotascope.quotas import QuotaSet, from_admin, read_quotas
from quotascope.quotas.candidates import Candidate

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def older_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a broker of Kafka 4.3.1 that logs its requests."""
    with running(Layout.COMBINED, tmp_path_factory.mktemp("older"), plugin=Plugin(logs_requests=True)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def newest_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a broker of Kafka 4.4.0 that logs its requests."""
    special = Plugin(newest=True, logs_requests=True)
    with running(Layout.COMBINED, tmp_path_factory.mktemp("newest"), plugin=special) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def watching(newest_kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """Yield an exporter of the newest broker that is scraped each second."""
    folder = tmp_path_factory.mktemp("exporter") / "serve"
    settings = settings_for(newest_kafka.brokers, newest_kafka.admin)
    with serving(folder, settings) as exporter, ThreadPoolExecutor(1) as pool:
        end = Event()

        def scrape() -> None:
            while not end.wait(1):
                exporter.page()

        scrapes = pool.submit(scrape)
        yield exporter
        end.set()
        scrapes.result()


@pytest.fixture(scope="module")
def recorded(newest_kafka: Cluster, watching: Exporter) -> Recording:
    """Return the first log of the newest broker, so that its JVM is no longer young afterwards."""
    assert watching.url
    return record(newest_kafka, seconds=12)


def _checked(recording: Recording) -> Check:
    log = log_of(recording.log.splitlines(), "recording")
    return check(log, rules_of_text(recording.rules_yaml()))


def _totals(result: Check, kind: QuotaType) -> tuple[float, float]:
    """Reported and predicted seconds of all clients."""
    totals = [total for total in result.totals if total.kind is kind]
    reported = sum(total.reported_s for total in totals)
    return reported, sum(total.predicted_s for total in totals)


def _assert_predicted(recording: Recording) -> None:
    result = _checked(recording)
    assert not result.unreadable
    totals = [t for t in result.totals if t.kind is not QuotaType.CONTROLLER_MUTATION]
    close = sum(total.close for total in totals)
    assert close / sum(total.requests for total in totals) > 0.9
    # one answer that is off by a window is a second of ten: logs have whole ms, and a window ends or does not
    for kind in QuotaType:
        reported, predicted = _totals(result, kind)
        assert reported > 1
        assert predicted == pytest.approx(reported, rel=0.2)


def test_a_fresh_log_of_4_3_1_is_predicted(older_kafka: Cluster) -> None:
    """
    Every kind of quota throttles.

    Almost every answer is predicted to the ms, and the totals are near what was reported to the clients.
    """
    _assert_predicted(record(older_kafka, seconds=12))


def test_a_fresh_log_of_4_4_0_is_predicted(recorded: Recording) -> None:
    """A fresh log of 4.4.0, the newest release, is predicted as well as others."""
    _assert_predicted(recorded)


def test_an_episode_is_the_same_in_the_exporter_and_in_the_log(
    recorded: Recording, watching: Exporter, tmp_path: Path
) -> None:
    """
    Begin and end agree within a few collections, and within the minute for which a broker reports a throttle.

    The rule is the same.
    """
    (tmp_path / "requests.log").write_bytes(recorded.log)
    (tmp_path / "quotas.yaml").write_text(recorded.rules_yaml(), encoding="utf-8")
    ingest_logs([str(tmp_path / "requests.log")], str(tmp_path / "usage"), IngestOptions(broker="1"))
    quotas = read_quotas(tmp_path / "quotas.yaml")
    answer_of_log = find_episodes(str(tmp_path / "usage"), ("alice", "app1"), quotas=quotas)
    (logged,) = [episode for episode in answer_of_log["episodes"] if episode["quota_type"] == "produce"]
    entity = {"user": "alice", "client_id": "app1", "quota_type": "produce"}

    def row_of_it() -> dict[str, Any]:
        path = "/api/v1/episodes?user=alice&client_id=app1&type=produce"
        answer = json.loads(watching.get(path).text)["episodes"]
        rows = [row for row in answer if row["client_id"] == "app1"]
        assert len(rows) == 1
        return dict(rows[0])

    row = eventually(row_of_it)
    assert -1 < row["began_at"] - logged["began_at"] < 30
    assert -30 < row["seen_at"] - logged["ended_at"] < 90
    assert f"produce {row['rule']['name']}" in logged["rules"]
    (line,) = watching.log("throttle episode began", **entity)
    assert datetime.fromisoformat(line["began"]).timestamp() == pytest.approx(row["began_at"], abs=0.01)


@pytest.mark.parametrize("minor", [3, 4])
def test_throttles_beyond_a_month(minor: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """
    A request of 3 MB under 1 B/s is throttled beyond the range of an int.

    The newest release throttles for 24.8 days, 4.3 overflows and does not throttle; the check and what-if agree with
    both.
    """
    newest = minor == 4
    cluster = request.getfixturevalue("newest_kafka" if newest else "older_kafka")
    recording = record_beyond_a_month(cluster)
    result = _checked(recording)
    heavy = [
        comparison
        for comparison in result.comparisons
        if comparison.request.client_id == "heavy" and comparison.request.produced
    ]
    reported = [comparison.request.throttle_ms for comparison in heavy]
    assert len(reported) == 3
    assert (max(reported) == INT_MAX) is newest
    predicted = [max(0, comparison.prediction.bytes_ms) for comparison in heavy]
    assert predicted == pytest.approx(reported, abs=3 * 99_000)
    log = tmp_path / "requests.log"
    log.write_bytes(recording.log)
    ((entity, limits),) = recording.rules
    ingest_logs([str(log)], str(tmp_path / "usage"), IngestOptions(broker="1"))
    tried = Candidate(name="as it was", quotas=QuotaSet({from_admin(entity): limits}))
    kafka = followed(KafkaRelease(4, minor))
    answer = what_if(str(tmp_path / "usage"), [tried], Mode.OPEN_LOOP, kafka=kafka)
    (row,) = [candidate for candidate in answer.summary.rows if candidate["client_id"] == "heavy"]
    assert (row["longest_throttle_ms"] == INT_MAX) is newest


@pytest.mark.usefixtures("recorded")
def test_lower_limits_do_what_was_predicted(newest_kafka: Cluster) -> None:
    """
    Work is logged under some limits and replayed under lower ones.

    Then these are set, and the same work is done again.
    """
    recording_before = record_work(newest_kafka, Limits(), "1")
    lower = QuotaSet({from_admin(entity): limits for entity, limits in LOWER.rules("1")})
    log = log_of(recording_before.log.splitlines(), "before")
    requests = MutationLedger().resolve(log.table).requests
    candidate = Candidate(name="lower", quotas=lower)
    settings = ReplaySettings(release=followed(None, log=log.release).release)
    results = replay(history_of(requests), [candidate], Mode.CLOSED_LOOP, settings)
    rows = results.to_pylist()
    check_after = _checked(record_work(newest_kafka, LOWER, "2"))
    for kind in (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.CONTROLLER_MUTATION):
        measured, _ = _totals(check_after, kind)
        predicted = sum(row["throttled_ms"] / 1000 for row in rows if row["quota_type"] == kind.label)
        assert measured > 5
        # throttles end where windows do: one second more or less of ten
        assert predicted == pytest.approx(measured, rel=0.2)
