"""Differences in quotas between releases, and the signs by which a broker shows its release."""

import pytest

from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.numbers import INT_MAX, LONG_MAX
from quotascope.metrics.kafka.release import EXACT_RELEASES, NEWEST_RELEASE, OLDEST_RELEASE, KafkaRelease, ReleaseRange


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("4.4", KafkaRelease(4, 4)),
        ("4.4.0", KafkaRelease(4, 4)),
        ("4.3.1", KafkaRelease(4, 3)),
        ("3.10.0-SNAPSHOT", KafkaRelease(3, 10)),
        ("3.3.2", KafkaRelease(3, 3)),
        ("2.8.2.1-ccs", KafkaRelease(2, 8, zookeeper=True)),
        ("3.2", KafkaRelease(3, 2, zookeeper=True)),
        ("3.9-zookeeper", KafkaRelease(3, 9, zookeeper=True)),
        ("3.9.1-ZK", KafkaRelease(3, 9, zookeeper=True)),
        ("3.6.2-zk-ccs", KafkaRelease(3, 6, zookeeper=True)),
        ("3.6.2-zkplus", KafkaRelease(3, 6)),
    ],
)
def test_versions(text: str, release: KafkaRelease) -> None:
    """A version has the release of its first two numbers; ZooKeeper mode is named, or the only mode of its time."""
    assert KafkaRelease.parse(text) == release


@pytest.mark.parametrize("text", ["", "4", "4.", ".4", "4.x", "v4.4", "4.4 ", "4.4\n", "٤.٤", "4.4" + "0" * 9_999])
def test_no_versions(text: str) -> None:
    """A text that is no version is refused in a short message."""
    with pytest.raises(MalformedName, match="not a version of Kafka") as caught:
        KafkaRelease.parse(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["4.0-zookeeper", "4.4.0-zk", "5.1-zk"])
def test_there_is_no_zookeeper_mode_since_4_0(text: str) -> None:
    """A version of 4.0 or later with ZooKeeper mode is refused."""
    with pytest.raises(MalformedName, match=r"no ZooKeeper mode since 4\.0"):
        KafkaRelease.parse(text)


@pytest.mark.parametrize(
    ("difference", "before", "since"),
    [
        ("charges_forwarded_requests", "3.2", "3.3"),
        ("enforces_controller_mutations", "3.4", "3.5"),
        ("charges_validate_only", "3.4", "3.5"),
        ("checks_quota_values", "3.4", "3.5"),
        ("keeps_overlapping_windows", "3.7", "3.8"),
        ("cuts_mutation_waits_first", "4.1", "4.2"),
        ("forgets_mutation_throttles_of_zero", "4.1", "4.2"),
        ("forgets_removed_rules", "4.1", "4.2"),
        ("saturates", "4.3", "4.4"),
        ("refuses_infinite_quotas", "4.3", "4.4"),
    ],
)
def test_differences_begin_with_a_release(difference: str, before: str, since: str) -> None:
    """Each difference between releases in KRaft mode begins with one release, and holds for all after it."""
    first = KafkaRelease.parse(since)
    for release in EXACT_RELEASES:
        if not release.zookeeper or difference in {
            "charges_forwarded_requests",
            "keeps_overlapping_windows",
            "cuts_mutation_waits_first",
            "forgets_mutation_throttles_of_zero",
        }:
            expected = (release.major, release.minor) >= (first.major, first.minor)
            assert getattr(release, difference) is expected, release
    assert getattr(KafkaRelease.parse("5.0"), difference)
    assert getattr(KafkaRelease.parse(before), difference) is False


@pytest.mark.parametrize("version", ["2.8", "3.3-zk", "3.4-zk", "3.9-zk"])
def test_zookeeper_mode(version: str) -> None:
    """The ZooKeeper controller enforces mutations, charges no validate-only one, mutes, and stores any number."""
    release = KafkaRelease.parse(version)
    assert release.zookeeper
    assert release.enforces_controller_mutations
    assert not release.charges_validate_only
    assert not release.forwards_mutations
    assert not release.checks_quota_values
    assert str(release) == f"{release.version} in ZooKeeper mode"


def test_what_ended_long_ago() -> None:
    """Static defaults ended with 2.8, the expiry of exempt time and windows of no length with 3.2."""
    assert [KafkaRelease.parse(version).has_static_defaults for version in ("2.8", "3.0")] == [True, False]
    assert [KafkaRelease.parse(version).expires_exempt_time for version in ("3.2", "3.3")] == [True, False]
    assert [KafkaRelease.parse(version).shortest_span_ms for version in ("3.2", "3.3")] == [0, 1]


@pytest.mark.parametrize(
    ("versions", "longest_ms"),
    [(("2.8", "3.9", "4.0", "4.3"), LONG_MAX), (("4.4", "4.10", "5.0"), INT_MAX)],
    ids=["up to 4.3", "since 4.4"],
)
def test_throttle_times_of_rates_stop_since_4_4(versions: tuple[str, ...], longest_ms: int) -> None:
    """Throttle times stop at 32 bits since 4.4; the newest release is followed by default."""
    lengths_ms = {KafkaRelease.parse(version).longest_rate_ms for version in versions}
    assert lengths_ms == {longest_ms}
    assert str(NEWEST_RELEASE) == "4.4"


def test_exact_releases() -> None:
    """The exact releases are 2.8 to 4.4, in both modes where both were meant for production."""
    assert len(EXACT_RELEASES) == 11 + 7 + 5
    assert min(EXACT_RELEASES) == OLDEST_RELEASE
    assert max(EXACT_RELEASES) == NEWEST_RELEASE
    assert all(KafkaRelease.parse(text).is_exact for text in ("2.8", "3.2", "3.3", "3.9-zk", "4.4"))
    assert not any(KafkaRelease.parse(text).is_exact for text in ("2.7", "3.10", "4.5", "5.0"))


APIS_OF_2_8 = {0: 9, 1: 12, 2: 6, 3: 11, 4: 5, 5: 3, 6: 7, 9: 7, 24: 3, 35: 2}
APIS_OF_3_7 = {0: 10, 1: 16, 2: 8, 3: 12, 9: 9, 24: 4, 35: 4}
LEADER_AND_ISR = 4


@pytest.mark.parametrize(
    ("apis", "expected"),
    [
        (APIS_OF_2_8, "2.8 in ZooKeeper mode"),
        ({**APIS_OF_2_8, 2: 5}, "2.7 in ZooKeeper mode"),
        ({**APIS_OF_2_8, 1: 11, 2: 5, 35: 1, 9: 6}, "2.4 in ZooKeeper mode or before"),
        ({**APIS_OF_2_8, 2: 7}, "3.0 in ZooKeeper mode"),
        ({**APIS_OF_2_8, 1: 13, 35: 4, LEADER_AND_ISR: 6}, "3.3 in ZooKeeper mode"),
        ({**APIS_OF_2_8, 1: 13, 35: 4, LEADER_AND_ISR: 7}, "3.4 in ZooKeeper mode"),
        (APIS_OF_3_7, "3.7"),
        ({**APIS_OF_3_7, 1: 13, 2: 7, 24: 3}, "3.3 to 3.4"),
        ({**APIS_OF_3_7, 1: 17, LEADER_AND_ISR: 7}, "3.9 in ZooKeeper mode"),
        ({**APIS_OF_3_7, 0: 12, 1: 17, 2: 10}, "4.0"),
        ({**APIS_OF_3_7, 0: 13, 1: 18, 2: 10}, "4.1"),
        ({**APIS_OF_3_7, 0: 13, 1: 18, 2: 11}, "4.2"),
        ({**APIS_OF_3_7, 0: 13, 1: 18, 2: 11, 35: 5}, "4.3"),
        ({**APIS_OF_3_7, 0: 14, 1: 19, 18: 9}, "4.4 or later"),
    ],
)
def test_apis_show_the_releases_that_a_broker_may_be_of(apis: dict[int, int], expected: str) -> None:
    """Versions of APIs show the releases from the first that has them to the last before newer ones."""
    assert str(ReleaseRange.of_api_versions(apis)) == expected


def test_an_answer_about_apiversions_alone_shows_no_release() -> None:
    """An answer with ApiVersions alone shows no release: a broker answers unknown versions so (error 35)."""
    assert ReleaseRange.of_api_versions({18: 3}) is None


def test_levels_of_metadata_version() -> None:
    """A level between two releases is the older one's, and a level above all is unknown."""
    assert KafkaRelease.of_metadata_version(15) == KafkaRelease(3, 6)
    assert KafkaRelease.of_metadata_version(33) == KafkaRelease(4, 4)
    assert KafkaRelease.of_metadata_version(6) is None
    assert [KafkaRelease.is_known_level(level) for level in (33, 34)] == [True, False]
