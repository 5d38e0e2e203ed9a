"""Which quota a throttle is put down to, and how totals are judged."""

from dataclasses import replace

import pytest
from tools.replay_check.broker import Prediction, attributed
from tools.replay_check.check import Total, totals
from tools.replay_check.replay import Comparison

from quotascope.metrics import QuotaType

from .requests import request

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
    """Only quotas that are set, none beyond its longest, and of two the nearer."""
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
    """What cannot be predicted is counted and left out on both sides."""
    known = _compared(500, 520, QuotaType.PRODUCE)
    unknown = replace(_compared(9000, 0, QuotaType.PRODUCE), known=False)
    (total,) = totals([known, unknown])
    assert (total.user, total.client_id, total.kind) == (
        "alice",
        "app",
        QuotaType.PRODUCE,
    )
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
    """5 % of bytes and mutations, 20 % of request time; of less than a second, as much of a second."""
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
