"""Inferences of a check from answers, and the quota that it holds responsible for a throttle."""

from dataclasses import replace

import pytest
from tools.replay_check.broker import Prediction, ReplayedBroker, attributed
from tools.replay_check.check import Total, totals
from tools.replay_check.log import Request
from tools.replay_check.moments import Moments, Move, explained, moved
from tools.replay_check.replay import Comparison
from tools.replay_check.rules import RulesInForce
from tools.replay_check.unlogged import (
    PlausibleTime,
    SumBounds,
    UnloggedTime,
    bounds_by_other_quota,
    bounds_by_throttle,
)

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.principal import Principal

T0 = 1_700_000_000_000


def request(line: int = 1, *, connection: str = "c", **changed: int) -> Request:
    """Return a DescribeCluster that took one ms of a handler and half a ms to send."""
    given = {"decided_ms": T0, "throttle_ms": 0, "thread_ns": 1_000_000, **changed}
    return Request(
        line=line,
        decided_ms=given["decided_ms"],
        completed_ms=given["decided_ms"] + 1,
        principal=Principal("alice"),
        client_id="app",
        connection=connection,
        correlation_id=line,
        api_key=60,
        api_version=0,
        thread_ns=given["thread_ns"],
        send_ms=0.5,
        throttle_ms=given["throttle_ms"],
        own_ms=given["throttle_ms"],
    )


EARLIER = Move(first=True, earlier_ms=1)
LATER = Move(first=False, earlier_ms=-1)


def _moments() -> Moments:
    """
    Return two windows of a sensor: line 1 began the first, and line 3 the second.

    Line 2 came before the second one; lines from 4 on are measured from it.
    """
    moments = Moments()
    later = [(line, 3) for line in range(4, 31)]
    for line, oldest in ((1, 1), (2, 1), (3, 1), *later):
        at_ms = T0 + line
        moments.charged("s", T0 + oldest, request(line, decided_ms=at_ms))
    return moments


@pytest.mark.parametrize(
    ("wrong", "move", "found"),
    [
        ({4, 5}, EARLIER, {"s": 3}),
        ({4, 5}, LATER, {"s": 2}),
        # nothing came before the first window
        ({1, 2}, EARLIER, {"s": 1}),
        ({1, 2}, LATER, {}),
        # a single answer could be right by chance
        ({4}, EARLIER, {}),
        # that a ms is wrong explains a few answers; of many, the limit is wrong
        ({4, 5, 6}, EARLIER, {"s": 3}),
        ({4, 5, 6, 7}, EARLIER, {}),
    ],
)
def test_the_requests_beside_the_oldest_windows_beginning_are_tried(
    wrong: set[int], move: Move, found: dict[str, int]
) -> None:
    """The one that began the window may belong to the one before, and the last one before may have begun it."""
    assert moved(wrong, _moments(), move) == found


def test_two_answers_have_to_be_put_right() -> None:
    """A request is moved only if this puts two answers of its sensor right."""
    moments = _moments()
    assert explained({4, 5}, set(), moments) == {"s"}
    assert explained({4, 5}, {5}, moments) == frozenset()
    assert explained({4, 5, 99}, {4, 5}, moments) == frozenset()


@pytest.mark.parametrize(
    ("error_ms", "found"), [(0, {}), (1, {1: 1}), (4, {1: 4}), (5, {}), (-1, {2: 1}), (-2, {2: 2}), (-3, {})]
)
def test_a_windows_beginning_lies_within_its_handlers_time(error_ms: int, found: dict[int, int]) -> None:
    """
    A window's beginning lies within 3 ms of its handler's time, and 1 ms for rounding.

    A longer distance has another cause than clocks; a shorter one of two ms at most is the answer's own.
    """
    moments = Moments()
    moments.charged("s", T0, request(1, thread_ns=3_000_000))
    moments.answered("s", T0, request(2, decided_ms=T0 + 10), error_ms)
    assert moments.found == found


def test_the_first_answer_settles_a_window() -> None:
    """The first answer fixes a window's beginning, with which later ones must agree within two ms."""
    moments = Moments()
    moments.charged("s", T0, request(1, thread_ns=3_000_000))
    for line, error_ms in ((2, 3), (3, 3), (4, 4), (5, 1), (6, 0), (7, 6)):
        moments.answered("s", T0, request(line, decided_ms=T0 + line), error_ms)
    assert moments.found == {1: 3, 4: -1, 5: 2}


def test_no_quota_has_anything_against_a_request_at_first() -> None:
    """All throttles are 0 without rules and before any answer of a controller."""
    decided = ReplayedBroker(RulesInForce(quotas={}), {}, T0).decide(request(), None)
    assert (decided.bytes_ms, decided.request_ms, decided.mutation_ms) == (0, 0, 0)


CONFIG = MetricConfig(11, 1000, quota=Quota(2.0))


SHOWN = bounds_by_throttle(500, 1000, 10_000, 2.0)
"""At 2 % over 10 s, 500 ms more mean that 21 percent-seconds had been used."""


@pytest.mark.parametrize(
    ("seen", "held", "missing"),
    [
        (SHOWN, 20.0, 0.999),
        (SHOWN, 22.0, -0.999),
        # what a request quota asks for is cut off at one window: such a throttle shows only the least
        (bounds_by_throttle(1000, 1000, 10_000, 2.0), 21.0, 0.999),
        (bounds_by_throttle(1000, 1000, 10_000, 2.0), 40.0, 0),
        # a client that was not throttled was within the limit
        (bounds_by_throttle(0, 1000, 10_000, 2.0), 25.0, -5.0),
        # another quota's throttle says that this one asked for no more
        (bounds_by_other_quota(500, 1000, 10_000, 2.0), 22.0, -0.999),
        (bounds_by_other_quota(5000, 1000, 10_000, 2.0), 99.0, 0),
    ],
)
def test_a_throttle_shows_what_the_sensor_held(seen: SumBounds, held: float, missing: float) -> None:
    """A throttle shows the sensor's sum, to the rounding of one ms."""
    assert seen.missing(held) == pytest.approx(missing)


def test_what_is_exact() -> None:
    """A throttle below a whole window shows the sensor's sum to one ms, and one of a window does not."""
    assert (SHOWN.exact, bounds_by_throttle(1000, 1000, 10_000, 2.0).exact) == (True, False)
    assert [SHOWN.least, SHOWN.most] == pytest.approx([20.999, 21.001])


def _busy(time: UnloggedTime, count: int) -> None:
    """Return requests that together can hold 3 ms each: one of a handler, two of the network."""
    for line in range(1, count + 1):
        each = request(line)
        time.handled("s", each, CONFIG)
        time.completed("s", each, CONFIG)


def test_a_sensor_is_put_right_by_what_an_answer_shows() -> None:
    """A sensor that holds 20, and 21 by an answer, gets the one that the log left out."""
    time = UnloggedTime()
    _busy(time, 200)
    assert time.answered("s", request(201), CONFIG, 20.0, SHOWN) == pytest.approx(0.999)


def test_no_more_is_inferred_than_is_plausible() -> None:
    """Rules that are not those in force cannot be explained away by unlogged time."""
    time = UnloggedTime()
    _busy(time, 20)
    put_right = time.answered("s", request(21), CONFIG, 3.0, SHOWN)
    most = 20 * (1 + 2 * 0.5) * 0.1 + 100 * 0.1  # and one connection was opened
    assert 3.0 + put_right == pytest.approx(most)


def test_what_authentication_took_is_booked_where_the_connection_was_opened() -> None:
    """The time of authentication is booked where the connection was opened, as the first whole answer shows it."""
    time = UnloggedTime()
    _busy(time, 200)
    time.answered("s", request(201), CONFIG, 20.0, bounds_by_throttle(1000, 1000, 10_000, 2.0))
    time.answered("s", request(202), CONFIG, 21.999, bounds_by_throttle(600, 1000, 11_000, 2.0))
    assert time.found == {1: pytest.approx(3.199)}
    again = UnloggedTime(booked=time.found)
    assert again.completed("s", request(1), CONFIG) == pytest.approx(3.199 + 0.05)


def test_false_alarms_do_not_add_up() -> None:
    """Each answer in a row that shows a sensor to hold too much takes twice as much away."""
    time = UnloggedTime()
    _busy(time, 100)
    seen = bounds_by_throttle(0, 1000, 10_000, 2.0)
    taken = [time.answered("s", request(n), CONFIG, 20.1, seen) for n in (201, 202)]
    assert taken == [pytest.approx(-0.2), pytest.approx(-0.4)]


def test_the_share_of_the_send_time_is_learned() -> None:
    """A network thread that is charged for more than the send time is charged so from then on."""
    time = UnloggedTime()
    _busy(time, 200)
    time.answered("s", request(201), CONFIG, 21.0, SHOWN)
    for line in range(202, 212):
        each = request(line)
        time.completed("s", each, CONFIG)
        time.answered("s", each, CONFIG, 20.97, SHOWN)
    assert 1.1 < time.sensor("s").share < 2
    assert time.average_share() == time.sensor("s").share


def test_plausible_time_follows_the_sensors_windows() -> None:
    """Time that has left the windows of the sensor is no longer plausible."""
    plausible = PlausibleTime()
    plausible.handled(CONFIG, T0, 10.0)
    plausible.sent(CONFIG, T0 + 1, 1.0, opened=True)
    least, most = plausible.bounds(CONFIG, T0 + 2)
    assert least == 1.0
    assert most == pytest.approx(1 + 0.2 + 10)
    assert plausible.bounds(CONFIG, T0 + 20_000) == (0.0, 0.0)


BOTH = frozenset({QuotaType.PRODUCE, QuotaType.REQUEST})


@pytest.mark.parametrize(
    ("throttle_ms", "bytes_ms", "request_ms", "limited", "kind"),
    [
        (500, 499, 20, BOTH, QuotaType.PRODUCE),
        (500, 20, 499, BOTH, QuotaType.REQUEST),
        (500, 0, 0, BOTH, QuotaType.REQUEST),
        (1500, 0, 1000, BOTH, QuotaType.PRODUCE),
        (500, 0, 0, {QuotaType.PRODUCE}, QuotaType.PRODUCE),
        (500, 499, 0, {QuotaType.REQUEST}, QuotaType.REQUEST),
    ],
)
def test_a_throttle_is_put_down_to_the_quota_that_can_have_caused_it(
    throttle_ms: int, bytes_ms: int, request_ms: int, limited: set[QuotaType], kind: object
) -> None:
    """A throttle is put down to the nearer prediction of the quotas that are set, unless it is too long for it."""
    prediction = Prediction(bytes_of=QuotaType.PRODUCE, bytes_ms=bytes_ms, request_ms=request_ms)
    assert attributed(request(throttle_ms=throttle_ms), prediction, limited, 1000) is kind


def test_what_the_broker_did_not_find_itself_comes_from_the_controller() -> None:
    """The answer to a forwarded request holds more than the broker's own figure."""
    forwarded = replace(request(throttle_ms=3000), own_ms=10)
    kind = attributed(forwarded, Prediction(), frozenset(), 1000)
    assert kind is QuotaType.CONTROLLER_MUTATION


def _compared(throttle_ms: int, bytes_ms: int, kind: QuotaType) -> Comparison:
    return Comparison(
        request=request(throttle_ms=throttle_ms),
        prediction=Prediction(bytes_of=QuotaType.PRODUCE, bytes_ms=bytes_ms),
        reported_by=kind,
        known=True,
    )


def test_a_quota_that_did_not_throttle_asked_for_no_more() -> None:
    """A byte rate that predicts 10 ms is right beside a request throttle of 50, and wrong beside none."""
    assert _compared(50, 10, QuotaType.REQUEST).close(QuotaType.PRODUCE)
    assert _compared(50, 48, QuotaType.PRODUCE).close(QuotaType.PRODUCE)
    assert not _compared(0, 10, QuotaType.PRODUCE).close(QuotaType.PRODUCE)
    assert not _compared(50, 10, QuotaType.PRODUCE).close(QuotaType.PRODUCE)


def test_totals_add_up_by_client_and_quota() -> None:
    """Totals leave out on both sides what cannot be predicted, and count it."""
    known = _compared(500, 520, QuotaType.PRODUCE)
    unknown = replace(_compared(9000, 0, QuotaType.PRODUCE), known=False)
    (total,) = totals([known, unknown])
    assert (total.user, total.client_id, total.kind) == ("alice", "app", QuotaType.PRODUCE)
    assert (total.requests, total.throttled, total.unknown) == (2, 1, 1)
    assert (total.reported_s, total.predicted_s) == (0.5, 0.52)


@pytest.mark.parametrize(
    ("kind", "reported_s", "predicted_s", "holds"),
    [
        (QuotaType.PRODUCE, 10, 10.5, True),
        (QuotaType.PRODUCE, 10, 10.6, False),
        (QuotaType.FETCH, 10, 9.4, False),
        (QuotaType.CONTROLLER_MUTATION, 10, 9.4, False),
        (QuotaType.REQUEST, 10, 8.1, True),
        (QuotaType.REQUEST, 10, 12.1, False),
        (QuotaType.REQUEST, 0.1, 0.25, True),
        (QuotaType.REQUEST, 0.0, 0.3, False),
    ],
)
def test_a_total_holds_within_its_tolerance(
    kind: QuotaType, reported_s: float, predicted_s: float, *, holds: bool
) -> None:
    """
    A total holds within 5 % of bytes and mutations, or 20 % of request time.

    Below a second, the tolerance is that part of a second.
    """
    total = Total(
        user="u",
        client_id="c",
        kind=kind,
        requests=1,
        throttled=1,
        close=0,
        reported_s=reported_s,
        predicted_s=predicted_s,
        unknown=0,
    )
    assert total.holds is holds
