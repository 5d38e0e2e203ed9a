"""A client that keeps its rhythm and, as KIP-219 asks, stays silent while it is throttled."""

from random import Random

from .cast import Role
from .request import Request, Response


class DemoClient:
    """
    One member of the cast at work: one connection, one request at a time.

    Args:
        role: who it is and what it does.
        start_ms: when the demo starts, in epoch ms.

    """

    def __init__(self, role: Role, start_ms: int) -> None:
        self.role = role
        self.due_ms: int = start_ms + role.rhythm.first_ms
        """When it sends its next request, in epoch ms."""
        self._start_ms = start_ms
        # Seeded by name, so that the picture is alike every time.
        self._random = Random(f"{role.user}/{role.client_id}")  # noqa: S311 - not a secret
        self._again: Request | None = None

    @property
    def request(self) -> Request:
        """What it asks for next."""
        return self._again or self.role.request

    def answered(self, response: Response, now_ms: int) -> None:
        """Plan the next request: after the throttle, and first of all what was held back or refused."""
        self._again = response.again
        ready_ms = now_ms + response.throttle_ms
        if response.again is not None:
            self.due_ms = ready_ms
        else:
            self.due_ms = max(ready_ms, self._next_ms(now_ms))

    def _next_ms(self, now_ms: int) -> int:
        rhythm = self.role.rhythm
        # Small delays are made up for, so that the pace holds; what a throttle held up is not.
        late = now_ms - self.due_ms > rhythm.every_ms
        base_ms = now_ms if late else self.due_ms
        return self._start_ms + rhythm.next_ms(base_ms - self._start_ms, self._random)
