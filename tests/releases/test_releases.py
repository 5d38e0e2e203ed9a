"""
The features that work with a release of Kafka, one test each; docs/start/dialects.md has the table of the results.

The docstring's first line is the column of the table.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.readings import LIMITS, TYPES, USAGE, Reading, between, readings_of
from tests.releases.observed import Observed
from tools.replay_check import Check, check, log_of, rules_of_text

from quotascope.exporter.diagnosis.releases import TESTED
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange
from quotascope.pipeline.ingest.options import IngestOptions
from quotascope.pipeline.request_log.parsing import LogSource, parse_lines
from quotascope.pipeline.runs.ingest import ingest_logs

pytestmark = pytest.mark.real

EXPECTED = {
    ("produce", "alice", "app1"): (25_000.0, "user_client"),
    ("produce", "alice", ""): (60_000.0, "user"),
    ("produce", "svc:team a", ""): (1e6, "user"),
    ("fetch", "carol", "reader"): (80_000.0, "user_default_client"),
    ("request", "", "prober"): (0.01, "client"),
    ("request", "svc:team a", ""): (0.025, "user"),
    ("controller_mutation", "bob", ""): (2.0, "user"),
}
"""Limit in the family's unit and level of each entity that the load makes appear, by quota type, user and client-id."""
BOUNDS = {
    QuotaType.PRODUCE: 0.02,
    QuotaType.FETCH: 0.10,
    QuotaType.REQUEST: 0.15,
    QuotaType.CONTROLLER_MUTATION: 0.02,
}
"""Largest error of the sum of the predicted throttles, as a ratio of the reported ones."""
WINDOWS_S = 2.0
"""
Two windows: logs have whole ms, so that an answer beside the end of a window may be off by one, of each of two
producers.
"""
CLOSE = 0.95
"""The least share of answers to producers whose throttle is predicted to 3 ms."""


def _expected(observed: Observed) -> dict[tuple[str, str, str], tuple[float, str]]:
    """`EXPECTED` without what a release does not measure: mutations, where it does not enforce their quota."""
    enforced = _release(observed).enforces_controller_mutations
    return {key: value for key, value in EXPECTED.items() if enforced or key[0] != "controller_mutation"}


def test_limits_and_rules(observed: Observed) -> None:
    """
    Limits and rules are the configured ones.

    They are there for each entity of the load, on each broker that measures it.
    """
    pages = [moment.page for moment in observed.moments]
    expected = _expected(observed)
    missing = set(expected)
    for (kind, user, client_id), (limit, level) in expected.items():
        labels = {"user": user, "client_id": client_id}
        for page in pages:
            for sample in page.series(LIMITS[kind], **labels):
                assert sample.value == limit
            for sample in page.series("kafka_quota_rule_info", quota_type=kind, **labels):
                assert sample.labels["level"] == level
                missing.discard((kind, user, client_id))
    assert not missing


def _readings(observed: Observed) -> Iterator[tuple[str, Reading]]:
    """Yield every number of an expected entity on each broker that ever measured it."""
    for kind, user, client_id in _expected(observed):
        for node in observed.moments[0].before:
            attribute = USAGE[kind][0]
            key = (TYPES[kind], user, client_id, attribute)
            if any(key in moment.before[node] for moment in observed.moments):
                for reading in readings_of(kind, user, client_id):
                    labels = {**reading.labels, "broker": node}
                    yield node, Reading(reading.family, labels, reading.key, reading.converted)


def test_usage_and_throttle_times(observed: Observed) -> None:
    """
    Usage, throttle time and tokens are the broker's own.

    Each lies between two direct reads, for every number that the load makes appear.
    """
    assert len(observed.moments) >= 3
    by_family: Counter[str] = Counter()
    wrong = []
    for node, reading in _readings(observed):
        readings = []
        for moment in observed.moments:
            bounds = [reading.converted(direct[node].get(reading.key)) for direct in (moment.before, moment.after)]
            value = reading.shown(moment.page)
            readings.append((value, bounds))
            if value and between(value, *bounds):
                by_family[reading.family] += 1
        if not any(between(value, *bounds) for value, bounds in readings):
            wrong.append((reading.family, reading.labels, readings))
    assert not wrong
    families = {USAGE[kind][1] for kind in ("produce", "fetch", "request")}
    assert all(by_family[family] for family in (*families, "kafka_quota_throttle_time_seconds")), by_family


def test_agents_with_text(observed: Observed) -> None:
    """
    The pages of both jmx_exporters equal that of Jolokia.

    One is the usual version with the rules of kafka_2_0_0, the other an old one with ours.
    """
    assert set(observed.agents) == {"kafka_2_0_0", "0.16.1"}
    first_broker = next(iter(observed.moments[0].before))
    for name, pages in observed.agents.items():
        for kind, user, client_id in _expected(observed):
            labels = {"user": user, "client_id": client_id, "broker": first_broker}
            family = USAGE[kind][1]
            by_jolokia = any(moment.page.get(family, **labels) is not None for moment in observed.moments)
            assert any(page.get(family, **labels) is not None for page in pages) is by_jolokia, (name, kind, labels)


def test_request_log(observed: Observed, tmp_path: Path) -> None:
    """
    All lines of the request log are read, and none is quarantined.

    This includes the lines of each version that the release answers.
    """
    lines = [line for log in (*observed.logs, observed.every_version) for line in log.splitlines()]
    parsed = parse_lines(lines, list(range(len(lines))), LogSource(file="log"))
    assert parsed.quarantine.to_pylist() == []
    assert {"Produce", "Fetch", "CreateTopics", "DeleteTopics", "CreatePartitions"} <= set(observed.answered)
    rows = parsed.requests.select(["client_id", "api_key", "fetch_bytes", "produce_bytes", "throttle_ms"]).to_pylist()
    for row in rows:
        if row["api_key"] == ApiKey.FETCH:
            assert (row["fetch_bytes"] is None) is (row["throttle_ms"] > 0)
        elif row["api_key"] == ApiKey.PRODUCE:
            assert row["produce_bytes"] > 0
    for number, text in enumerate(observed.logs, 1):
        log = tmp_path / f"{number}.log"
        log.write_bytes(text)
        report = ingest_logs([str(log)], str(tmp_path / "usage"), IngestOptions(broker=str(number)))
        assert report.quarantined == 0


def _release(observed: Observed) -> KafkaRelease:
    return KafkaRelease.parse(observed.release.version + ("-zk" if observed.release.zookeeper else ""))


def _unknown_s(result: Check) -> float:
    """
    Return the seconds that the log leaves open of throttles by mutations.

    With ZooKeeper a request is charged at some moment of its handler's time.
    """
    charged = [comparison.request for comparison in result.comparisons if comparison.request.charged_ms is not None]
    longest_ns = max((request.thread_ns for request in charged), default=0)
    throttled = sum(request.throttle_ms > 0 for request in charged)
    return throttled * longest_ns / 2e9


def test_replay(observed: Observed) -> None:
    """
    The replay throttles as the broker did.

    Bytes within 2 %, fetches within 10 %, request time within 15 %, mutations by sum within 2 %.
    """
    rules, release = rules_of_text(observed.rules_yaml), _release(observed)
    sums: dict[QuotaType, tuple[float, float]] = dict.fromkeys(QuotaType, (0.0, 0.0))
    unknown_s, close, produced = 0.0, 0, 0
    for log in observed.logs:
        result = check(log_of(log.splitlines(), "log"), rules, release=release)
        assert not result.unreadable
        unknown_s += 0.0 if release.forwards_mutations else _unknown_s(result)
        for total in result.totals:
            reported, predicted = sums[total.kind]
            sums[total.kind] = reported + total.reported_s, predicted + total.predicted_s
            if total.kind is QuotaType.PRODUCE:
                close, produced = close + total.close, produced + total.requests
    assert close > CLOSE * produced > 0
    off = {}
    for kind, (reported, predicted) in sums.items():
        if kind is QuotaType.CONTROLLER_MUTATION and not release.enforces_controller_mutations:
            assert (reported, predicted) == (0, 0)
            continue
        assert reported > 1, f"{kind}: {reported} s throttled"
        tolerance = BOUNDS[kind] * reported + (unknown_s if kind is QuotaType.CONTROLLER_MUTATION else WINDOWS_S)
        if abs(predicted - reported) > tolerance:
            off[kind.label] = (reported, predicted, tolerance)
    assert not off


@pytest.mark.asked_only
def test_release_is_named(observed: Observed) -> None:
    """Doctor and status name the tested release and the mode, and each broker's answer shows them."""
    name = observed.release.name
    short = _release(observed)
    for release_range in observed.releases.values():
        assert isinstance(release_range, ReleaseRange)
        assert release_range == ReleaseRange(oldest=short, newest=short)
    assert short in TESTED
    findings = {finding["code"]: finding for finding in observed.answers["doctor"]["findings"]}
    assert f"Kafka {name}." in findings["kafka_answers"]["text"]
    assert findings["kafka_tested"]["subject"] == name
    assert f"\nKafka: {name}, tested\n" in observed.answers["status"]
    voters = {
        finding["code"] for finding in observed.answers["doctor"]["findings"] if finding["subject"] == "DescribeQuorum"
    }
    assert voters == {"no_quorum" if observed.release.zookeeper else "permission_granted"}
    assert "network" not in json.dumps(observed.answers["doctor"])


@pytest.mark.asked_only
def test_rules_that_apply(observed: Observed) -> None:
    """
    Explain, `quotas list`, `quotas set` and doctor name the rule that applies.

    They say where the release does not enforce one.
    """
    ignored = observed.release.version.startswith(("3.3.", "3.4."))
    mutation = observed.answers["explain --json"]["quotas"][-1]
    assert mutation["decision"]["configured"] == 2.0
    assert (mutation["not_enforced"] is not None) is ignored
    assert mutation["limit_state"] == ("unlimited" if ignored else "limited")
    sentence = "does not enforce controller mutation quotas"
    codes = {finding["code"] for finding in observed.answers["doctor"]["findings"]}
    assert ("rules_not_enforced" in codes) is ignored
    for command in ("explain", "quotas list", "quotas set", "status"):
        assert (sentence in observed.answers[command]) is ignored, command
    assert ("user bob applies, 2 mutations/s" in observed.answers["explain"]) is not ignored
