"""Which quota throttles a response."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import (
    INT_MAX,
    Decision,
    QuotaType,
    combine_controller,
    combine_fetch,
    combine_forwarded_response,
    combine_produce,
    combine_request,
)

PRODUCE, FETCH, REQUEST = QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST
MUTATION = QuotaType.CONTROLLER_MUTATION
times = st.integers(-INT_MAX - 1, INT_MAX)


def mute(by: QuotaType, ms: int, *, unrecord: bool = False) -> Decision:
    """A response that carries the time for which its channel is muted."""
    return Decision(
        throttled_by=by, throttle_time_ms=ms, response_ms=ms, unrecord_fetch=unrecord
    )


@pytest.mark.parametrize(
    ("bandwidth", "request_ms", "acks", "expected"),
    [
        (-1_294_977_296, 0, 1, Decision()),
        (-1_294_977_296, 7, 1, mute(REQUEST, 7)),
    ],
)
def test_produce(
    bandwidth: int, request_ms: int, acks: int, expected: Decision
) -> None:
    """A time that wrapped around is none; tests/conformance has the others."""
    assert combine_produce(bandwidth, request_ms, acks=acks) == expected


@pytest.mark.parametrize(
    ("bandwidth", "request_ms", "expected"),
    [
        (0, 0, Decision()),
        (10, 5, mute(FETCH, 10, unrecord=True)),
        (5, 10, mute(REQUEST, 10, unrecord=True)),
        (0, 10, mute(REQUEST, 10, unrecord=True)),
        (10, 10, mute(REQUEST, 10, unrecord=True)),
    ],
)
def test_fetch(bandwidth: int, request_ms: int, expected: Decision) -> None:
    """Any throttle holds the data back and gives its bytes back."""
    assert combine_fetch(bandwidth, request_ms) == expected


@pytest.mark.parametrize(
    ("request_ms", "forwarded", "unauthorized", "expected"),
    [
        (0, False, False, Decision()),
        (9, False, False, mute(REQUEST, 9)),
        (9, True, False, Decision(response_ms=9)),
        (9, True, True, mute(REQUEST, 9)),
        (0, True, True, Decision()),
    ],
)
def test_request(
    request_ms: int, *, forwarded: bool, unauthorized: bool, expected: Decision
) -> None:
    """A forwarded request is only reported, unless the cluster authorization failed."""
    decision = combine_request(
        request_ms, forwarded=forwarded, cluster_authorization_failed=unauthorized
    )
    assert decision == expected


@given(own=times, request_ms=times, forwarded=st.booleans())
def test_no_manager_without_a_positive_time(
    *, own: int, request_ms: int, forwarded: bool
) -> None:
    """A channel is muted exactly for a positive time, and the response says so."""
    for decision in (
        combine_produce(own, request_ms, acks=1),
        combine_fetch(own, request_ms),
        combine_request(request_ms, forwarded=forwarded),
        combine_controller(own, request_ms, forwarded=forwarded),
        combine_forwarded_response(own, request_ms),
    ):
        muted = decision.throttled_by is not None
        assert muted == (decision.throttle_time_ms > 0)
        assert not muted or decision.response_ms == decision.throttle_time_ms
