from __future__ import annotations

from quotascope.exporter.otlp.push import FORGET_AFTER_NS, Starts
from quotascope.metrics import catalog

ERRORS = catalog.THROTTLING_ERRORS
OWN = catalog.LIMITS_REFRESH_ERRORS
BROKER = b"1 CreateTopics"


def test_own_counters_count_since_the_exporter_began() -> None:
    """What the exporter counts began with it."""
    assert Starts(5).of(OWN, {b"": 3.0}, 10) == [5]


def test_a_start_is_never_after_the_point() -> None:
    """Clocks may be set back."""
    assert Starts(50).of(OWN, {b"": 3.0}, 10) == [10]


def test_an_unknown_start_is_the_first_look() -> None:
    """The first point begins and ends at the same time; later ones keep that beginning."""
    starts = Starts(5)
    assert starts.of(ERRORS, {BROKER: 3.0}, 10) == [10]
    assert starts.of(ERRORS, {BROKER: 3.0}, 20) == [10]
    assert starts.of(ERRORS, {BROKER: 4.0}, 30) == [10]


def test_a_smaller_value_begins_anew() -> None:
    """A broker that was restarted counts since some time after the last look."""
    starts = Starts(5)
    starts.of(ERRORS, {BROKER: 3.0}, 10)
    starts.of(ERRORS, {BROKER: 9.0}, 20)
    assert starts.of(ERRORS, {BROKER: 1.0}, 30) == [20]
    assert starts.of(ERRORS, {BROKER: 2.0}, 40) == [20]


def test_series_do_not_share_a_start() -> None:
    """Each broker and request has its own, and so has each family."""
    starts = Starts(5)
    starts.of(ERRORS, {BROKER: 3.0}, 10)
    starts.of(catalog.REQUEST_THROTTLED_SECONDS, {BROKER: 1.0}, 15)
    both = {b"2 CreateTopics": 1.0, BROKER: 3.0}
    assert starts.of(ERRORS, both, 20) == [20, 10]


def test_what_is_gone_is_forgotten() -> None:
    """Memory does not grow with counters of the past."""
    starts = Starts(5)
    starts.of(ERRORS, {BROKER: 3.0}, 10)
    starts.forget(10 + FORGET_AFTER_NS)
    assert starts.of(ERRORS, {BROKER: 3.0}, 20) == [10]
    starts.forget(21 + FORGET_AFTER_NS)
    assert starts._counts == {}
