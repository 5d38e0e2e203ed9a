"""Basic authentication of whoever asks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import SecretStr

from .headers import MOMENTS_LATER, refusal
from .load import WebSettings
from .occasional import Occasional
from .passwords import Passwords, TooManyLogins

_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="quotascope", charset="UTF-8"'}


class Login:
    """Lets in whom the web config file names, on every path; everybody, when it names nobody."""

    def __init__(self, settings: Callable[[], WebSettings]) -> None:
        self._settings = settings
        self._passwords = Passwords()
        self._refused = Occasional("logins were refused")
        self._busy = Occasional("too many passwords to check at once")

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """As aiohttp wants it."""
        users = self._settings().config.basic_auth_users
        if not users:
            return await handler(request)
        try:
            accepted = await self._accepts(request, users)
        except TooManyLogins:
            self._busy.happened(address=request.remote)
            text = "too many passwords to check at once"
            return refusal(503, text, MOMENTS_LATER)
        if accepted:
            return await handler(request)
        return refusal(401, "user and password, please", _CHALLENGE)

    async def _accepts(
        self, request: web.Request, users: Mapping[str, SecretStr]
    ) -> bool:
        given = credentials(request.headers.get("Authorization", ""))
        if given is None:
            return False
        address = request.remote or ""
        accepted = await self._passwords.accept(users, *given, address)
        if not accepted:
            # without the name, for which many a one types the password
            self._refused.happened(address=address)
        return accepted


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
