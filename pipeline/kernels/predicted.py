"""What every request would have been told under one candidate, in open loop."""

from typing import NamedTuple

import numpy as np

from .compiled import Flags, Ints, kernel, run
from .ledger import stronger
from .open_loop import OpenLoop, own_throttle, request_throttle
from .requests import MUTATION, asked


class Predicted(NamedTuple):
    """By request."""

    own_ms: Ints
    """What the quota beside the request quota asks for."""
    request_ms: Ints
    throttled_by: Flags
    """The quota type that throttles, negative for none."""
    refused: Flags


Predicted.WRITTEN = True  # type: ignore[attr-defined]


def predicted(loop: OpenLoop) -> Predicted:
    """Return the verdicts of a loop of one candidate."""
    count = len(loop.requests.times)
    outcome = Predicted(
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int8),
        np.zeros(count, np.int8),
    )
    run(_predict, loop, outcome, work=count)
    return outcome


@kernel
def _predict(loop: OpenLoop, outcome: Predicted) -> None:
    for row in range(len(loop.requests.times)):
        request = asked(loop.requests, row)
        own_ms = own_throttle(loop, request, 0)
        request_ms = request_throttle(loop, request, 0)
        outcome.own_ms[row] = own_ms
        outcome.request_ms[row] = request_ms
        outcome.throttled_by[row] = stronger(request.kind, own_ms, request_ms)
        if request.kind == MUTATION:
            outcome.refused[row] = loop.outcomes.refused[loop.outcomes.numbers[row]]
