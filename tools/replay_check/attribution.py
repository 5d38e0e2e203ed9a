"""
Which quota an answer's throttle comes from: the log gives one number, the longest.

What tells them apart: a request throttle is never longer than one window; a forwarded request's answer holds more than the broker found
itself only when the controller asked for it; and a quota that is not set throttles nobody. Where two are left, it is the one whose
replay comes nearer.
"""

from collections.abc import Collection

from quotascope.metrics import QuotaType

from .prediction import Prediction
from .request import Request


def attributed(
    request: Request,
    prediction: Prediction,
    limited: Collection[QuotaType],
    longest_request_ms: int,
) -> QuotaType:
    """
    The quota behind `request.told_ms`.

    Args:
        request: with a throttle in its answer.
        prediction: what the replay says.
        limited: the quotas that limit this client.
        longest_request_ms: one window of the request quota.

    """
    if not request.forwarded and request.told_ms > request.own_ms:
        return QuotaType.CONTROLLER_MUTATION
    kind = prediction.bytes_of
    if kind is None or kind not in limited:
        return QuotaType.REQUEST
    if QuotaType.REQUEST not in limited or request.told_ms > longest_request_ms:
        return kind
    by_bytes = abs(request.told_ms - prediction.bytes_ms)
    by_time = abs(request.told_ms - prediction.request_ms)
    return kind if prediction.bytes_ms > 0 and by_bytes < by_time else QuotaType.REQUEST
