"""What every answer carries, errors included, and how a request is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDict

from .load import WebSettings

DEFAULTS: Final = {
    "Server": "quotascope",  # and not which version of what
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Unless the answer has its own; the page's policy allows its own style and script."""

MOMENTS_LATER: Final = {"Retry-After": "1"}


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


class Headers:
    """Puts the headers on, and those of the web config file over them."""

    def __init__(self, settings: Callable[[], WebSettings]) -> None:
        self._settings = settings

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """As aiohttp wants it."""
        try:
            response = await handler(request)
        except web.HTTPException as error:
            self.put_on(error.headers)
            raise
        self.put_on(response.headers)
        return response

    def put_on(self, headers: CIMultiDict[str]) -> None:
        """Complete the headers of an answer."""
        for name, value in DEFAULTS.items():
            headers.setdefault(name, value)
        configured = self._settings().config.http_server_config.headers
        headers.update({name: value for name, value in configured.items() if value})
