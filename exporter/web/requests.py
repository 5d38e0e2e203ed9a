"""What a request passes before it is answered: under which name, by whom, how much at once and how often, and what every answer carries."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDict

from .connection import Connection
from .load import WebSettings
from .model import RateLimitConfig
from .occasional import Occasional
from .passwords import Passwords, TooManyLogins

ALWAYS: Final = frozenset({"/-/healthy", "/-/ready"})
"""Cheap, and asked for by whatever would restart the process: they go on when nothing else does."""
SCRAPES: Final = frozenset({"/metrics"})
"""They have places of their own, so that readers of pages keep no scraper out."""
DEFAULTS: Final = {
    "Server": "quotascope",  # and not which version of what
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""On every answer that has not its own; the page's policy allows its own style and script."""
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="quotascope", charset="UTF-8"'}
_MOMENTS_LATER: Final = {"Retry-After": "1"}


class Requests:
    """
    Lets requests through to what answers them, and refuses others.

    A page that a browser loaded from elsewhere can have its own name point to this address (DNS rebinding), and read what
    is there as its own. It cannot choose the name that the browser sends, so that name is looked at.

    Args:
        settings: Those of the web config file, as they are now.
        most: So many scrapes may be answered at once, and as many other requests.
        listening: The address that is listened on. On one of this machine alone only ``localhost`` and IP addresses
            are asked for, unless others are allowed; elsewhere it cannot be known what it is called.
        allowed_hosts: Names that may be asked for besides IP addresses and ``localhost``; empty for the default.
        clock: Steady seconds.

    """

    def __init__(
        self,
        settings: Callable[[], WebSettings],
        most: int,
        listening: str,
        allowed_hosts: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self.any_host = not allowed_hosts and not is_loopback(listening)
        """Whether requests for any name are answered."""
        self._hosts = {"localhost", *(n.lower().rstrip(".") for n in allowed_hosts)}
        self._passwords = Passwords()
        self._bucket = _Bucket(clock)
        self._most = most
        self._scrapes, self._pages = asyncio.Semaphore(most), asyncio.Semaphore(most)
        self._other_host = Occasional("requests for another host were refused")
        self._wrong_login = Occasional("logins were refused")
        self._busy = Occasional("too many passwords to check at once")

    async def answer(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """What ``handler`` answers, or a refusal; either with the headers that every answer has."""
        try:
            response = await self._refused(request) or await self._placed(
                request, handler
            )
        except web.HTTPException as error:
            self.put_headers(error.headers)
            raise
        self.put_headers(response.headers)
        return response

    def put_headers(self, headers: CIMultiDict[str]) -> None:
        """Complete the headers of an answer: those of the web config file count more."""
        for name, value in DEFAULTS.items():
            headers.setdefault(name, value)
        configured = self._settings().config.http_server_config.headers
        for name, value in configured.items():
            if value:
                headers[name] = value

    async def _refused(self, request: web.Request) -> web.Response | None:
        """The answer to a request that may not come in; nothing but its head has cost anything until then."""
        if isinstance(request.protocol, Connection):
            request.protocol.asked(body=request.body_exists)
        if request.body_exists:
            return refusal(413, "nothing here takes a body")
        host = host_name(request.headers.get("Host", ""))
        if not (self.any_host or host in self._hosts or _is_address(host)):
            self._other_host.happened(address=request.remote, host=host)
            return refusal(421, "not asked for under this name; server.allowed_hosts says which are")  # fmt: skip
        users = self._settings().config.basic_auth_users
        if not users:
            return None
        given, address = (
            credentials(request.headers.get("Authorization", "")),
            request.remote or "",
        )
        try:
            if given is not None:
                if await self._passwords.accept(users, *given, address):
                    return None
                # without the name, for which many a one types the password
                self._wrong_login.happened(address=address)
        except TooManyLogins:
            self._busy.happened(address=request.remote)
            text = "too many passwords to check at once"
            return refusal(503, text, _MOMENTS_LATER)
        return refusal(401, "user and password, please", _CHALLENGE)

    async def _placed(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """What ``handler`` answers in a place that the request has until its answer is taken, if one is free."""
        if request.path in ALWAYS:
            return await handler(request)
        if not self._bucket.take(self._settings().config.rate_limit):
            return refusal(429, "the rate limit is reached", _MOMENTS_LATER)
        places = self._scrapes if request.path in SCRAPES else self._pages
        if places.locked():
            text = f"{self._most} such requests are being answered already"
            return refusal(503, text, _MOMENTS_LATER)
        await places.acquire()  # at once, for one is free
        try:
            return await handler(request)
        finally:  # an answer is made to its end, though its client hung up
            if isinstance(request.protocol, Connection):
                request.protocol.until_taken(places.release)
            else:
                places.release()


def refusal(
    status: int, text: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    """
    The answer to a request that is not let in, after which the connection ends.

    Else its client could send hundreds of requests at once and take no answer: the connection, and what is counted as
    under way with it, would be held until the deadline for taking an answer.
    """
    answer = web.Response(status=status, text=f"{status}: {text}\n", headers=headers)
    answer.force_close()
    return answer


def host_name(header: str) -> str:
    """The host of a ``Host`` header, without its port, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == ""  # HTTP/1.0 without one, which no browser speaks
    return True


def credentials(header: str) -> tuple[str, bytes] | None:
    """User and password of an ``Authorization`` header (RFC 7617); None when it has none."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(token.strip(), validate=True)
        user, colon, password = decoded.partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None


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
