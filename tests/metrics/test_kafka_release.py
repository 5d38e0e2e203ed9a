"""What Kafka's releases differ in."""

import pytest

from quotascope.metrics import (
    INT_MAX,
    LONG_MAX,
    NEWEST_RELEASE,
    KafkaRelease,
    MalformedName,
)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("4.4", KafkaRelease(4, 4)),
        ("4.4.0", KafkaRelease(4, 4)),
        ("4.3.1", KafkaRelease(4, 3)),
        ("3.10.0-SNAPSHOT", KafkaRelease(3, 10)),
        ("2.8.2.1-ccs", KafkaRelease(2, 8)),
    ],
)
def test_versions(text: str, release: KafkaRelease) -> None:
    """A version belongs to its release, whatever its patch level."""
    assert KafkaRelease.parse(text) == release


@pytest.mark.parametrize("text", ["", "4", "4.", ".4", "4.x", "v4.4", "4.4 ", "4.4\n", "٤.٤", "4.4" + "0" * 9_999])  # fmt: skip
def test_no_versions(text: str) -> None:
    """Anything else is refused in a short message."""
    with pytest.raises(MalformedName, match="no version of Kafka") as caught:
        KafkaRelease.parse(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("versions", "longest_ms"),
    [(("2.8", "3.9", "4.0", "4.3"), LONG_MAX), (("4.4", "4.10", "5.0"), INT_MAX)],
    ids=["up to 4.3", "since 4.4"],
)
def test_throttle_times_of_rates_stop_since_4_4(
    versions: tuple[str, ...], longest_ms: int
) -> None:
    """Where 32 bits do; before, nothing stops them."""
    found = {KafkaRelease.parse(version).longest_rate_ms for version in versions}
    assert found == {longest_ms}


def test_newest() -> None:
    """The newest release is what is followed by default."""
    assert str(NEWEST_RELEASE) == "4.4"
