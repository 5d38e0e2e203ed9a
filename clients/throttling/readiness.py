"""When an admin client loses patience with a node that does not become ready."""


class Readiness:
    """
    How long a node has kept a call waiting (Kafka: `nodeReadyDeadlines` of `KafkaAdminClient`).

    A throttle longer than the request timeout ends in a disconnection, and the call goes to whatever node is right by then.

    Args:
        request_timeout_ms: `request.timeout.ms`.

    """

    __slots__ = ("_deadline_ms", "_request_timeout_ms")

    def __init__(self, request_timeout_ms: int) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._deadline_ms: int | None = None

    def overdue(self, now_ms: int) -> bool:
        """The node is not ready: whether to disconnect from it now. The first time starts the clock, True stops it."""
        if self._deadline_ms is None:
            self._deadline_ms = now_ms + self._request_timeout_ms
            return False
        if now_ms < self._deadline_ms:
            return False
        self._deadline_ms = None
        return True

    def ready(self, now_ms: int) -> int:
        """The node is ready: return what is left of the request timeout in ms, and stop the clock."""
        deadline_ms, self._deadline_ms = self._deadline_ms, None
        return self._request_timeout_ms if deadline_ms is None else deadline_ms - now_ms
