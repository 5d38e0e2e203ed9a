"""The admission of requests by host name, user, number at once and rate; and the headers of every answer."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDict

from ..logs import RateLimitedLog
from .connection import HttpConnection
from .passwords import Passwords, TooManyLogins
from .pieces import Pieces
from .places import Answers, Place, Places, Refusal
from .settings import WebSettings
from .web_config import RateLimitConfig

ALWAYS: Final = frozenset({"/-/healthy", "/-/ready"})
"""Health checks, which are cheap and decide on restarts: no limit applies to them."""
SCRAPES: Final = frozenset({"/metrics"})
"""Paths of scrapes, which have a limit of their own, so that readers of pages keep no scraper out."""
DEFAULTS: Final = {
    "Server": "quotascope",  # without naming a program or version
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every answer that does not set its own; the page's policy allows its own style and script."""
_LOGINS: Final = "logins"
"""Reason of a refusal: too many passwords wait to be checked."""
_RATE: Final = "rate_limit"
"""Reason of a refusal: the rate limit of the web config file."""
_BYTES: Final = "bytes"
"""Reason of a refusal: answers that were not taken held too many bytes, so that their connections were cut."""
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="quotascope", charset="UTF-8"'}
_MOMENTS_LATER: Final = {"Retry-After": "1"}


class AccessPolicy:
    """
    Passes requests on to the application, or refuses them.

    A page that a browser loaded from another site can point its own host name to this address (DNS rebinding) and read
    the answers as its own. It cannot choose the ``Host`` header, which is checked for that reason.

    Args:
        settings: Returns the current settings of the web config file.
        max_requests: Most scrapes, and most other requests, that are answered at once.
        listening: The addresses that are listened on.
        allowed_hosts: Host names that are answered besides IP addresses and ``localhost``. If empty, any host name
            is answered; none if all addresses are loopback addresses.
        clock: Steady seconds.

    """

    def __init__(
        self,
        settings: Callable[[], WebSettings],
        max_requests: int,
        listening: Sequence[str],
        allowed_hosts: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        addresses = {host: _address(host) for host in listening}
        loopback = all(
            host == "localhost" if address is None else address.is_loopback for host, address in addresses.items()
        )
        self._any_host = not allowed_hosts and not loopback
        # "" is HTTP/1.0 without a Host header, which no browser speaks
        self._hosts = {"", "localhost", *(name.lower().rstrip(".") for name in allowed_hosts)}
        self._passwords = Passwords()
        self._clock = clock
        self._tokens: float | None = None
        """Tokens of the rate limit at ``_counted_at``; None while there is no limit."""
        self._counted_at = 0.0
        self._scrapes, self._pages = Places(max_requests, clock), Places(max_requests, clock)
        self._answers = Answers()
        self.refused: dict[str, int] = dict.fromkeys((*Refusal, _LOGINS, _RATE, _BYTES), 0)
        """Number of requests that were refused for want of room since the start, by reason."""
        self._other_host = RateLimitedLog("requests for another host were refused")
        self._wrong_login = RateLimitedLog("logins were refused")
        self._busy = RateLimitedLog("too many passwords to check at once")
        self._no_place = {
            Refusal.BUSY: RateLimitedLog("requests were refused: all places are taken"),
            Refusal.ONE_CLIENT: RateLimitedLog("requests were refused: one client has its part of the places"),
        }
        self._gave_way = RateLimitedLog("connections were cut: answers that clients do not take fill the memory")

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Return the answer of ``handler``, or a refusal; either with the headers of every answer."""
        try:
            response = (
                self._wrong_form(request)
                or await self._not_logged_in(request)
                or await self._within_limits(request, handler)
            )
        except web.HTTPException as error:
            self.put_headers(error.headers)
            raise
        self.put_headers(response.headers)
        return response

    def put_headers(self, headers: CIMultiDict[str]) -> None:
        """Complete the headers of an answer. Headers of the web config file take precedence."""
        for name, value in DEFAULTS.items():
            headers.setdefault(name, value)
        configured = self._settings().config.http_server_config.headers
        for name, value in configured.items():
            if value:
                headers[name] = value

    def _wrong_form(self, request: web.Request) -> web.Response | None:
        """Refuse a request with a body, or for another host; only its head was read until then."""
        if isinstance(request.protocol, HttpConnection):
            request.protocol.head_received(body=request.body_exists)
        if request.body_exists:
            return refusal(413, "requests must not have a body")
        host = host_name(request.headers.get("Host", ""))
        if self._any_host or host in self._hosts or _address(host) is not None:
            return None
        self._other_host.add(address=request.remote, host=host)
        return refusal(421, "this host name is not served; server.allowed_hosts lists those that are")

    async def _not_logged_in(self, request: web.Request) -> web.Response | None:
        """Refuse a request without a valid user and password, if there are users."""
        users = self._settings().config.basic_auth_users
        if not users:
            return None
        login = credentials(request.headers.get("Authorization", ""))
        address = request.remote or ""
        try:
            if login is not None:
                if await self._passwords.accept(users, *login, address):
                    return None
                # the line lacks the user's name, which may be a password typed into the wrong field
                self._wrong_login.add(address=address)
        except TooManyLogins:
            self.refused[_LOGINS] += 1
            self._busy.add(address=address)
            return refusal(503, "too many passwords to check at once", _MOMENTS_LATER)
        return refusal(401, "user and password are required", _CHALLENGE)

    async def _within_limits(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Return the answer of ``handler``; a refusal when there are too many requests."""
        if request.path in ALWAYS:
            return await handler(request)
        if not self._take_token(self._settings().config.rate_limit):
            self.refused[_RATE] += 1
            return refusal(429, "the rate limit is reached", _MOMENTS_LATER)
        places = self._scrapes if request.path in SCRAPES else self._pages
        connection = request.protocol if isinstance(request.protocol, HttpConnection) else None
        place = places.take(request.remote or "", connection.cut if connection else _nothing)
        if isinstance(place, Refusal):
            limit = places.most if place is Refusal.BUSY else places.most_of_one
            self.refused[place] += 1
            self._no_place[place].add(address=request.remote, path=request.path, places=limit)
            whose = "such requests" if place is Refusal.BUSY else "such requests of this client"
            return refusal(503, f"{limit} {whose} are being answered already", _MOMENTS_LATER)
        response: web.StreamResponse | None = None
        try:
            response = await handler(request)
            self._hold(place, response)
            return response
        finally:  # reached also if the client has hung up, since the handler runs to its end
            ok = response is not None and response.status == HTTPStatus.OK
            release = partial(self._release, places, place, ok=ok)
            if connection is not None:
                connection.until_taken(release)
            else:
                release(taken=True)

    def _hold(self, place: Place, response: web.StreamResponse) -> None:
        """Count the bytes of an answer until its client has taken it."""
        body = response.body if isinstance(response, web.Response) else None
        if isinstance(body, Pieces):
            body = body.value
        given_way = self._answers.hold(place, body) if isinstance(body, (bytes, bytearray)) else 0
        if given_way:
            self.refused[_BYTES] += given_way
            self._gave_way.add(connections=given_way, most_bytes=self._answers.most_bytes)

    def _release(self, places: Places, place: Place, *, ok: bool, taken: bool) -> None:
        """Give back the place of a request; a client that took an answer with status 200 is known from then on."""
        self._answers.release(place)
        places.leave(place, answered=ok and taken)

    def _take_token(self, limit: RateLimitConfig) -> bool:
        """Return whether the rate limit allows one more request (token bucket)."""
        if limit.interval is None:
            self._tokens = None
            return True
        now_seconds = self._clock()
        if self._tokens is None:
            self._tokens, self._counted_at = limit.burst, now_seconds
        tokens = self._tokens + (now_seconds - self._counted_at) / limit.interval
        self._tokens, self._counted_at = min(limit.burst, tokens), now_seconds
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _nothing() -> None:
    """Do nothing: the connection of another server ends by itself."""


def refusal(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """
    Return the answer to a request that is refused, after which the connection ends.

    Else its client could send hundreds of requests at once and take no answer: the connection, and what is counted as
    under way with it, would be held until the deadline for taking an answer.
    """
    answer = web.Response(status=status, text=f"{status}: {text}\n", headers=headers)
    answer.force_close()
    return answer


def host_name(header: str) -> str:
    """Return the host of a ``Host`` header, without its port, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def credentials(header: str) -> tuple[str, bytes] | None:
    """Return user and password of an ``Authorization`` header (RFC 7617); None when it has none."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(token.strip(), validate=True)
        user, colon, password = decoded.partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a host is; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
