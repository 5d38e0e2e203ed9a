"""
The decision on a response under several quotas (Kafka: `KafkaApis`, `RequestHandlerHelper`).

Pure rules: throttle times in ms go in, a decision comes out. The times may be negative, when one wrapped around 32
bits (`throttle_time.narrow`), and count as zero then.
"""

from dataclasses import dataclass

from ..kafka.entities import QuotaType


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Way in which a response is sent."""

    throttled_by: QuotaType | None = None
    """The quota manager that mutes the channel, None for no muting."""

    throttle_time_ms: int = 0
    """How long that manager mutes, 0 without one."""

    response_ms: int = 0
    """The throttle time in the response to the client."""

    unrecord_fetch: bool = False
    """Whether the data is held back: an empty response, and its size taken from the Fetch quota again."""


def combine_produce(bandwidth_ms: int, request_ms: int, *, acks: int) -> Decision:
    """
    Decide for Produce; a tie goes to Request.

    With `acks=0` the Request quota is not asked, since no response is sent; the channel may still be muted.
    """
    return _stronger(QuotaType.PRODUCE, bandwidth_ms, request_ms if acks else 0)


def combine_fetch(bandwidth_ms: int, request_ms: int) -> Decision:
    """
    Decide for a consumer's Fetch or ShareFetch; a tie goes to Request.

    Any throttle, of either kind, makes the response empty and its size is given back to the Fetch quota: the
    client will ask for the same data again (KIP-219).
    """
    decision = _stronger(QuotaType.FETCH, bandwidth_ms, request_ms)
    return Decision(
        throttled_by=decision.throttled_by,
        throttle_time_ms=decision.throttle_time_ms,
        response_ms=decision.response_ms,
        unrecord_fetch=decision.response_ms > 0,
    )


def combine_request(
    request_ms: int, *, forwarded: bool = False, cluster_authorization_failed: bool = False
) -> Decision:
    """
    Decide for any other response of a client's API, errors included.

    The node that a request was forwarded to only reports; the one that forwarded it mutes. A failed cluster
    authorization mutes on the spot. The response carries the time as it is, negative ones too.
    """
    if request_ms <= 0 or (forwarded and not cluster_authorization_failed):
        return Decision(response_ms=request_ms)
    return _mute(QuotaType.REQUEST, request_ms)


def combine_controller(controller_ms: int, request_ms: int, *, forwarded: bool = False) -> Decision:
    """
    Decide for a controller mutation on the node that runs it; a tie goes to Request.

    For a forwarded request, in KRaft all of them, it is only reported.
    """
    stronger_ms = max(controller_ms, request_ms)
    if stronger_ms <= 0 or forwarded:
        return Decision(response_ms=stronger_ms)
    return _stronger(QuotaType.CONTROLLER_MUTATION, controller_ms, request_ms)


def combine_forwarded_response(controller_ms: int, request_ms: int) -> Decision:
    """
    Decide on the broker that forwarded a request and got `controller_ms` with the controller's response.

    The broker mutes through Request whatever the reason was: this is where KRaft hides mutation throttles.
    """
    return combine_request(max(controller_ms, request_ms))


def _stronger(quota_type: QuotaType, own_ms: int, request_ms: int) -> Decision:
    if max(own_ms, request_ms) <= 0:
        return Decision(response_ms=max(own_ms, request_ms))
    if own_ms > request_ms:
        return _mute(quota_type, own_ms)
    return _mute(QuotaType.REQUEST, request_ms)


def _mute(quota_type: QuotaType, throttle_time_ms: int) -> Decision:
    return Decision(throttled_by=quota_type, throttle_time_ms=throttle_time_ms, response_ms=throttle_time_ms)
