from hypothesis import given
from hypothesis import strategies as st

from quotascope.clients.accounting.recent import RecentLongest

STEPS = st.lists(st.tuples(st.integers(0, 1_000), st.floats(0, 200)), max_size=30)


def test_what_is_recent_is_seen_by_all() -> None:
    """Asking takes nothing away, and a value is seen for a minute at least."""
    recent = RecentLongest(60, 100.0)
    recent.record(7, 119.0)
    assert [recent.value(at) for at in (119.0, 150.0, 179.0, 179.0)] == [7, 7, 7, 7]


def test_what_is_old_is_forgotten() -> None:
    """After two minutes at the latest, also when nobody asked meanwhile."""
    recent = RecentLongest(60, 100.0)
    recent.record(7, 119.0)
    assert recent.value(239.0) == 0
    recent.record(5, 240.0)
    recent.record(3, 290.0)
    assert recent.value(300.0) == 5
    assert recent.value(10_000.0) == 0


@given(STEPS)
def test_it_lies_between_one_span_and_two(steps: list[tuple[int, float]]) -> None:
    """It is at least the maximum of the last span, at most that of the last two."""
    recent, now = RecentLongest(60, 0.0), 0.0
    seen: list[tuple[float, int]] = []
    for value, pause in steps:
        now += pause
        recent.record(value, now)
        seen.append((now, value))
        of_one = max(value for at, value in seen if at > now - 60)
        of_two = max(value for at, value in seen if at >= now - 120)
        assert of_one <= recent.value(now) <= of_two
