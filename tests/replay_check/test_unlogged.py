"""Thread time that the log leaves out is inferred within limits, and only from answers that came before."""

import pytest
from tests.replay_check.requests import T0, request
from tools.replay_check.unlogged import PlausibleTime, UnloggedTime, shown, shown_at_most

from quotascope.metrics import MetricConfig, Quota

CONFIG = MetricConfig(11, 1000, quota=Quota(2.0))


def test_a_throttle_shows_what_the_sensor_held() -> None:
    """At 2 % over 10 s, 500 ms more mean that 21 percent-seconds had been used, to the rounding of one ms."""
    seen = shown(500, 1000, 10_000, 2.0)
    assert seen.exact
    assert seen.least == pytest.approx(20.999)
    assert seen.most == pytest.approx(21.001)


def test_a_throttle_of_a_whole_window_shows_only_the_least() -> None:
    """What a request quota asks for is cut off at one window."""
    seen = shown(1000, 1000, 10_000, 2.0)
    assert not seen.exact
    assert seen.missing(21.0) == pytest.approx(0.999)
    assert seen.missing(40.0) == 0


def test_no_throttle_shows_the_most() -> None:
    """Anyone who was not throttled was within the limit; another quota's throttle says that this one asked for no more."""
    assert shown(0, 1000, 10_000, 2.0).missing(25.0) == pytest.approx(-5.0)
    assert shown_at_most(500, 1000, 10_000, 2.0).missing(22.0) == pytest.approx(-0.999)
    assert shown_at_most(5000, 1000, 10_000, 2.0).missing(99.0) == 0


def _busy(time: UnloggedTime, count: int) -> None:
    """Requests that together can hold 3 ms each: one of a handler, two of the network."""
    for line in range(1, count + 1):
        each = request(line)
        time.handled("s", each, CONFIG)
        time.completed("s", each, CONFIG)


def test_a_sensor_is_put_right_by_what_an_answer_shows() -> None:
    """A sensor that holds 20 and should hold 21 gets the one that the log left out."""
    time = UnloggedTime()
    _busy(time, 200)
    seen = shown(500, 1000, 10_000, 2.0)
    assert time.answered("s", request(201), CONFIG, 20.0, seen) == pytest.approx(0.999)


def test_no_more_is_inferred_than_is_plausible() -> None:
    """Rules that are not those in force cannot be explained away by unlogged time."""
    time = UnloggedTime()
    _busy(time, 20)
    seen = shown(500, 1000, 10_000, 2.0)
    put_right = time.answered("s", request(21), CONFIG, 3.0, seen)
    most = 20 * (1 + 2 * 0.5) * 0.1 + 100 * 0.1  # and one connection was opened
    assert 3.0 + put_right == pytest.approx(most)


def test_what_authentication_took_is_booked_where_the_connection_was_opened() -> None:
    """The first answer that shows it whole says how much, for the next pass."""
    time = UnloggedTime()
    _busy(time, 200)
    time.answered("s", request(201), CONFIG, 20.0, shown(1000, 1000, 10_000, 2.0))
    time.answered("s", request(202), CONFIG, 21.999, shown(600, 1000, 11_000, 2.0))
    assert time.found == {1: pytest.approx(3.199)}
    again = UnloggedTime(booked=time.found)
    assert again.completed("s", request(1), CONFIG) == pytest.approx(3.199 + 0.05)


def test_false_alarms_do_not_add_up() -> None:
    """Each answer in a row that shows a sensor to hold too much takes twice as much away."""
    time = UnloggedTime()
    _busy(time, 100)
    seen = shown(0, 1000, 10_000, 2.0)
    taken = [time.answered("s", request(n), CONFIG, 20.1, seen) for n in (201, 202)]
    assert taken == [pytest.approx(-0.2), pytest.approx(-0.4)]


def test_the_share_of_the_send_time_is_learned() -> None:
    """A network thread that is charged for more than the send time is so for what follows."""
    time = UnloggedTime()
    _busy(time, 200)
    time.answered("s", request(201), CONFIG, 21.0, shown(500, 1000, 10_000, 2.0))
    for line in range(202, 212):
        each = request(line)
        time.completed("s", each, CONFIG)
        time.answered("s", each, CONFIG, 20.97, shown(500, 1000, 10_000, 2.0))
    assert 1.1 < time.sensor("s").share < 2
    assert time.average_share() == time.sensor("s").share


def test_plausible_time_follows_the_sensors_windows() -> None:
    """What has left the windows of the sensor is no longer possible either."""
    plausible = PlausibleTime()
    plausible.handled(CONFIG, T0, 10.0)
    plausible.sent(CONFIG, T0 + 1, 1.0, opened=True)
    least, most = plausible.bounds(CONFIG, T0 + 2)
    assert least == 1.0
    assert most == pytest.approx(1 + 0.2 + 10)
    assert plausible.bounds(CONFIG, T0 + 20_000) == (0.0, 0.0)
