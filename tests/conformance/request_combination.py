"""Vectors about responses on which several quotas have an opinion."""

from tests.conformance import expectations
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import (
    Decision,
    combine_controller,
    combine_fetch,
    combine_forwarded_response,
    combine_produce,
    combine_request,
)


class RequestCombinationRunner(Runner):
    """Decides about responses."""

    def op_combine(self, step: Fields) -> None:
        """Decide where the request is answered by the node that got it."""
        match step.text("api"):
            case "Produce":
                decision = combine_produce(
                    step.integer("bandwidth_ms"),
                    step.integer("request_ms"),
                    acks=step.integer("acks", -1),
                )
            case "Fetch" | "ShareFetch":
                decision = combine_fetch(
                    step.integer("bandwidth_ms"), step.integer("request_ms")
                )
            case _:
                decision = combine_request(
                    step.integer("request_ms"),
                    forwarded=step.flag("forwarded", default=False),
                )
        _expect(step, decision)

    def op_combine_controller(self, step: Fields) -> None:
        """Decide on the node that ran a mutation."""
        decision = combine_controller(
            step.integer("controller_ms"),
            step.integer("request_ms"),
            forwarded=step.flag("forwarded", default=False),
        )
        _expect(step, decision)

    def op_combine_forwarded(self, step: Fields) -> None:
        """Decide on the broker that forwarded a request."""
        decision = combine_forwarded_response(
            step.integer("controller_ms"), step.integer("request_ms")
        )
        _expect(step, decision)


def _expect(step: Fields, decision: Decision) -> None:
    expected = step.fields("expect", {})
    actual = {
        "throttled_by": decision.throttled_by and decision.throttled_by.value,
        "throttle_ms": decision.throttle_time_ms,
        "response_ms": decision.response_ms,
        "unrecord_fetch": decision.unrecord_fetch,
    }
    for key, value in actual.items():
        if key in expected:
            expectations.same(value, expected.raw(key), key)
    expected.done()
