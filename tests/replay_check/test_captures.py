"""The replay of logs that real brokers wrote says what they said, by the release that wrote them."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from tools.replay_check import Check, check, log_of, read_log, read_rules, rules_of_text
from tools.replay_check.__main__ import app
from tools.replay_check.rules import Key
from typer.testing import CliRunner, Result

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.pipeline.releases import KnownBy, followed

from .conftest import CAPTURES, NAMES, checked, log_path, rules_path

BYTES = (QuotaType.PRODUCE, QuotaType.FETCH)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kinds", "error"),
    [(BYTES, 0.02), ((QuotaType.CONTROLLER_MUTATION,), 0.02), ((QuotaType.REQUEST,), 0.10)]
)  # fmt: skip
def test_totals_are_predicted(name: str, kinds: tuple[QuotaType, ...], error: float) -> None:
    """Request time is predicted within 10 %, though the log leaves out the network threads; all others within 2 %."""
    checked_totals = [total for total in checked(name).totals if total.kind in kinds]
    assert checked_totals
    assert all(abs(total.error) < error for total in checked_totals)


OLDER = ("kafka-2.8.2-zookeeper", "kafka-3.7.2", "kafka-3.9.1-zookeeper", "kafka-4.1.2")


@pytest.mark.slow
@pytest.mark.parametrize("name", OLDER)
def test_totals_of_older_releases_are_predicted(name: str) -> None:
    """
    Totals are predicted by the windows of the release that the log shows.

    Bytes are within 2 %, request time within 15 %, mutations within 2 % in their sum. In ZooKeeper mode rules come into
    force one after the other, some of them half a second after the change was answered.
    """
    result = checked(name)
    assert result.kafka.known_by is KnownBy.LOG
    assert result.kafka.release == KafkaRelease.parse(name.removeprefix("kafka-"))
    within = {QuotaType.REQUEST: 0.15}
    assert {total.kind for total in result.totals} == set(QuotaType)
    for total in result.totals:
        assert abs(total.error) < within.get(total.kind, 0.02), total
    assert sum(total.reported_s for total in result.totals if total.kind in BYTES) > 30


@pytest.mark.slow
@pytest.mark.parametrize(("name", "other"), [("kafka-3.7.2", "3.8"), ("kafka-4.1.2", "3.7")])
def test_the_windows_of_another_release_are_found_out(name: str, other: str) -> None:
    """The windows of another release show as an error that no inference makes up for."""
    result = check(read_log(log_path(name)), read_rules(rules_path(name)), release=KafkaRelease.parse(other))
    assert any(abs(total.error) > 0.1 for total in result.totals if total.kind in BYTES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_byte_rates_are_predicted_to_the_millisecond(name: str) -> None:
    """Of all answers 99 in 100 are within 3 ms of what the broker reported, and inferred times are plausible."""
    result = checked(name)
    assert result.holds
    totals = [total for total in result.totals if total.kind in BYTES]
    close = sum(total.close for total in totals)
    assert close / sum(total.requests for total in totals) > 0.99
    assert not any(total.unknown for total in totals)
    assert any(ms > 10 for ms in result.unlogged_ms.values())
    assert 0.5 < result.share < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        (QuotaType.PRODUCE, 1.1),
        (QuotaType.PRODUCE, 0.9),
        (QuotaType.REQUEST, 2.0),
        (QuotaType.REQUEST, 0.6),
        (QuotaType.CONTROLLER_MUTATION, 1.2),
    ],
)
def test_other_rules_than_those_in_force_are_found_out(kind: QuotaType, factor: float) -> None:
    """The comparison can fail: nothing that is inferred makes up for wrong limits."""
    rules = read_rules(rules_path("kafka-4.4.0"))
    quotas = {key: value * (factor if key[0] is kind else 1) for key, value in rules.quotas.items()}
    result = check(read_log(log_path("kafka-4.4.0")), replace(rules, quotas=quotas))
    assert not result.holds
    assert any(not total.holds for total in result.totals if total.kind is kind)


IDLE = (QuotaType.PRODUCE, QuotaEntity("svc:team a"))
"""The one rule of the log of 4.4.0 that throttled no client."""


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(read_rules(rules_path("kafka-4.4.0")).quotas, key=str), ids=str)
def test_each_rule_that_throttled_a_client_is_needed(key: Key) -> None:
    """Leaving out a rule is found, except for one that no client came near."""
    rules = read_rules(rules_path("kafka-4.4.0"))
    others = {each: value for each, value in rules.quotas.items() if each != key}
    result = check(read_log(log_path("kafka-4.4.0")), replace(rules, quotas=others))
    assert result.holds == (key == IDLE)


@pytest.mark.slow
def test_without_inference_request_time_runs_away() -> None:
    """Without the inference of time that the log omits, predicted request throttles are off by a multiple."""
    name = "kafka-4.3.1"
    result = check(read_log(log_path(name)), read_rules(rules_path(name)), infer=False)
    errors = [t.error for t in result.totals if t.kind is QuotaType.REQUEST]
    assert max(errors) > 1


def _main(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.slow
def test_the_commands_exit_code(tmp_path: Path) -> None:
    """The exit code is 0 when all totals hold, 1 when one does not, and 2 without any to compare."""
    log, rules = log_path("kafka-4.4.0"), rules_path("kafka-4.4.0")
    right = _main(str(log), str(rules))
    assert right.exit_code == 0
    for text in ("topic-admin", "controller_mutation", "inferred from earlier answers"):
        assert text in right.output
    wrong = tmp_path / "quotas.yaml"
    wrong.write_text(rules.read_text().replace("60000", "78000"))
    assert _main(str(log), str(wrong)).exit_code == 1
    assert _main(str(log), str(rules), "--samples", "5").exit_code == 1
    empty = tmp_path / "empty.log"
    empty.write_text("nothing of the kind\n")
    nothing = _main(str(empty), str(rules))
    assert (nothing.exit_code, "no line is a request" in nothing.output) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "quotas.yaml"], "say make replay-check LOG=FILE QUOTAS=FILE"),
        (["request.log", ""], "say make replay-check LOG=FILE QUOTAS=FILE"),
        (["request.log", "none.yaml"], "none.yaml"),
        (["request.log", "none.yaml", "--samples", "0"], "at least 1 window"),
        (["request.log", "none.yaml", "--kafka-version", "x"], "x"),
    ],
)
def test_arguments_without_sense(arguments: list[str], message: str) -> None:
    """Senseless arguments end with exit code 2 and a message; make passes an empty text for an unset variable."""
    result = _main(*arguments)
    assert (result.exit_code, message in result.output.replace("\n", " ")) == (2, True)


RULES = "quotas: [{user: alice, client-id: heavy, producer_byte_rate: 1}]"


def of_a_month(version: str, release: KafkaRelease | None = None) -> Check:
    """Three requests of 1 MB, of a real broker under a limit of 1 B/s."""
    log = read_log(CAPTURES / f"kafka-{version}-month-request.log")
    return check(log, rules_of_text(RULES), infer=False, release=release)


def predicted(result: Check) -> list[int]:
    return [comparison.prediction.bytes_ms for comparison in result.comparisons if comparison.request.produced]


@pytest.mark.parametrize(("version", "minor"), [("4.3.1", 3), ("4.4.0", 4)])
def test_the_log_names_its_release(version: str, minor: int) -> None:
    """The log's answer to ApiVersions names the release, by which answers are predicted. An option overrules it."""
    result = of_a_month(version)
    assert result.kafka.release == KafkaRelease(4, minor)
    assert result.kafka.known_by is KnownBy.LOG
    reported = [comparison.request.throttle_ms for comparison in result.comparisons if comparison.request.produced]
    assert [max(0, ms) for ms in predicted(result)] == pytest.approx(reported, rel=1e-3)
    assert (max(predicted(result)) == 2_147_483_647) is (minor == 4)
    older = of_a_month(version, KafkaRelease(4, 3))
    assert older.kafka.known_by is KnownBy.OPTION
    assert min(predicted(older)) < 0


def test_a_log_without_the_feature_names_none() -> None:
    """A log without the feature names no release, and the newest one is followed."""
    lines = gzip.decompress(log_path("kafka-4.4.0").read_bytes()).splitlines()
    kept = [line for line in lines if b"metadata.version" not in line][:50]
    result = check(log_of(kept, "log"), rules_of_text("quotas: []"))
    assert result.kafka.known_by is KnownBy.DEFAULT


def test_what_is_known_now_overrules_the_log() -> None:
    """The option comes first, then the cluster, then the newest of the log."""
    older, newer = KafkaRelease(4, 2), KafkaRelease(4, 3)
    by_cluster = followed(None, cluster=older, log=newer)
    assert (by_cluster.release, by_cluster.known_by) == (older, KnownBy.CLUSTER)
    assert by_cluster.unless_log([newer]) == by_cluster
    assert followed(newer, cluster=older).known_by is KnownBy.OPTION
    by_log = followed(None).unless_log([older, newer])
    assert (by_log.release, by_log.also_named) == (newer, (older,))
