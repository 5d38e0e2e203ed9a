"""The check follows the release that wrote the log."""

import gzip

import pytest
from tests.replay_check.conftest import CAPTURES, log_path
from tools.replay_check import Check, check, log_of, read_log, rules_of_text

from quotascope.metrics import KafkaRelease
from quotascope.pipeline.releases import KnownBy, followed

RULES = "quotas: [{user: alice, client-id: heavy, producer_byte_rate: 1}]"


def checked(version: str, release: KafkaRelease | None = None) -> Check:
    """Three requests of 1 MB, of a real broker under a limit of 1 B/s."""
    log = read_log(CAPTURES / f"kafka-{version}-month-request.log")
    return check(log, rules_of_text(RULES), infer=False, release=release)


def predicted(result: Check) -> list[int]:
    """Throttles of the producer."""
    return [each.prediction.bytes_ms for each in result.comparisons if each.request.produced]


@pytest.mark.parametrize(("version", "minor"), [("4.3.1", 3), ("4.4.0", 4)])
def test_the_log_names_its_release(version: str, minor: int) -> None:
    """Its answer to ApiVersions holds the newest `metadata.version`, and each answer is predicted as it was given."""
    result = checked(version)
    assert result.kafka.release == KafkaRelease(4, minor)
    assert result.kafka.known_by is KnownBy.LOG
    reported = [each.request.throttle_ms for each in result.comparisons if each.request.produced]
    assert [max(0, ms) for ms in predicted(result)] == pytest.approx(reported, rel=1e-3)
    assert (max(predicted(result)) == 2_147_483_647) is (minor == 4)


def test_an_option_overrules_the_log() -> None:
    """What is named is followed, whatever the log says."""
    result = checked("4.4.0", KafkaRelease(4, 3))
    assert result.kafka.known_by is KnownBy.OPTION
    assert min(predicted(result)) < 0


def test_a_log_without_the_feature_names_none() -> None:
    """Then the newest is followed."""
    lines = gzip.decompress(log_path("kafka-4.4.0").read_bytes()).splitlines()
    kept = [line for line in lines if b"metadata.version" not in line][:50]
    result = check(log_of(kept, "log"), rules_of_text("quotas: []"))
    assert result.kafka.known_by is KnownBy.DEFAULT


def test_what_is_known_now_overrules_the_log() -> None:
    """The option first, then the cluster, then the newest of the log."""
    older, newer = KafkaRelease(4, 2), KafkaRelease(4, 3)
    by_cluster = followed(None, cluster=older, log=newer)
    assert (by_cluster.release, by_cluster.known_by) == (older, KnownBy.CLUSTER)
    assert by_cluster.unless_log([newer]) == by_cluster
    assert followed(newer, cluster=older).known_by is KnownBy.OPTION
    by_log = followed(None).unless_log([older, newer])
    assert (by_log.release, by_log.also_named) == (newer, (older,))
