"""What is asked of a request before it is answered: no body, not too many at once, not too often."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from .connection import Connection
from .headers import MOMENTS_LATER, refusal
from .load import WebSettings
from .model import RateLimitConfig

ALWAYS: Final = frozenset({"/-/healthy", "/-/ready"})
"""Cheap, and asked for by whoever would restart the process: they go on when nothing else does."""
SCRAPES: Final = frozenset({"/metrics"})
"""They have places of their own, so that readers of pages keep no scraper out."""


class Requests:
    """
    Refuses what is too much.

    Args:
        settings: With the rate limit that holds now.
        most: So many scrapes may be answered at once, and as many other requests.
        clock: Steady seconds.

    """

    def __init__(
        self,
        settings: Callable[[], WebSettings],
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._scrapes = _Places(most)
        self._pages = _Places(most)
        self._bucket = _Bucket(clock)

    @web.middleware
    async def note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Tell the connection that a request has come, and refuse one with a body; comes first."""
        connection = request.protocol
        if isinstance(connection, Connection):
            connection.asked()
            if request.body_exists:
                connection.refuse_body()
        if request.body_exists:
            return refusal(413, "nothing here takes a body")
        return await handler(request)

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Give the request a place until its answer is taken; comes last, so that only requests that may ask take one."""
        if request.path in ALWAYS:
            return await handler(request)
        if not self._bucket.take(self._settings().config.rate_limit):
            return refusal(429, "the rate limit is reached", MOMENTS_LATER)
        places = self._scrapes if request.path in SCRAPES else self._pages
        if not places.free:
            text = f"{places.most} such requests are being answered already"
            return refusal(503, text, MOMENTS_LATER)
        places.free -= 1
        try:
            return await handler(request)
        finally:  # an answer is made to its end, though its client hung up
            if isinstance(request.protocol, Connection):
                request.protocol.until_taken(places.give_back)
            else:
                places.give_back()


class _Places:
    """How many more requests of a kind may be answered now."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.free = most

    def give_back(self) -> None:
        self.free += 1


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
