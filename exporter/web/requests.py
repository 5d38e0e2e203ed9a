"""What is asked of a request before it is answered: no body, not too many at once, not too often."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from .connection import Connection
from .guests import Guests
from .load import WebSettings
from .model import RateLimitConfig

ALWAYS: Final = frozenset({"/-/healthy", "/-/ready"})
"""Cheap, and asked for by whoever would restart the process: they go on when nothing else does."""
_MOMENTS_LATER: Final = {"Retry-After": "1"}


class Requests:
    """
    Refuses what is too much.

    Args:
        settings: With the rate limit that holds now.
        guests: Who asks at this moment.
        most: So many requests may be answered at once.
        clock: Steady seconds.

    """

    def __init__(
        self,
        settings: Callable[[], WebSettings],
        guests: Guests,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._guests = guests
        self._most = most
        self._under_way = (
            0  # of those who hung up, too: their answers are made nevertheless
        )
        self._bucket = _Bucket(clock)

    @web.middleware
    async def note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Tell the connection that a request has come; comes first."""
        if isinstance(request.protocol, Connection):
            request.protocol.asked()
        return await handler(request)

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """As aiohttp wants it."""
        if request.body_exists:
            return _refusal(413, "nothing here takes a body", request)
        if request.path in ALWAYS:
            return await handler(request)
        if not self._bucket.take(self._settings().config.rate_limit):
            return _refusal(429, "the rate limit is reached", request)
        if self._full():
            text = f"{self._most} requests are being answered already"
            return _refusal(503, text, request)
        self._under_way += 1
        try:
            return await handler(request)
        finally:
            self._under_way -= 1

    def _full(self) -> bool:
        return self._guests.asking > self._most or self._under_way >= self._most


class _Bucket:
    """Tokens for requests."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tokens: float | None = None
        self._at = 0.0

    def take(self, limit: RateLimitConfig) -> bool:
        """Whether there was a token."""
        if limit.interval is None:
            self._tokens = None
            return True
        at = self._clock()
        if self._tokens is None:
            self._tokens, self._at = limit.burst, at
        grown = self._tokens + (at - self._at) / limit.interval
        self._tokens, self._at = min(limit.burst, grown), at
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _refusal(status: int, text: str, request: web.Request) -> web.Response:
    answer = web.Response(
        status=status,
        text=f"{status}: {text}\n",
        headers=None if status == 413 else _MOMENTS_LATER,  # noqa: PLR2004 - as above
    )
    if request.body_exists:
        answer.force_close()  # instead of reading it to its end
    return answer
