"""Requests as the validation sees them."""

from tools.replay_check.log import Request

from quotascope.metrics import Principal

T0 = 1_700_000_000_000


def request(line: int = 1, *, connection: str = "c", **changed: int) -> Request:
    """A DescribeCluster that took one ms of a handler and left in half a ms."""
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
