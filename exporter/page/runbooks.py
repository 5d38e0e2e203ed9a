"""The runbooks of the alerts as pages, so that an alert can link to what its reader has to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from markdown_it import MarkdownIt
from markupsafe import Markup

from .render import render

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but our own style and icon."""
_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")
"""HTML in a text is shown as it is written."""


class Runbooks:
    """
    Pages below ``/runbooks/``; addresses in them are relative, because a proxy may serve them under any path.

    Args:
        texts: Markdown by the name of the alert.

    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        """Markdown by the name of the alert."""
        self._pages: dict[str, str] = {}

    def add_to(self, router: web.UrlDispatcher) -> None:
        """All addresses; none where there is no runbook."""
        if self.texts:
            router.add_get("/runbooks", _with_slash)
            router.add_get("/runbooks/", self.index)
            router.add_get("/runbooks/{alert}", self.runbook)

    async def index(self, _request: web.Request) -> web.Response:
        """Every runbook there is."""
        return _answer(_rendered("Runbooks", heading="Runbooks", names=self.texts))

    async def runbook(self, request: web.Request) -> web.Response:
        """The runbook of one alert."""
        alert = request.match_info["alert"]
        if alert not in self.texts:
            raise web.HTTPNotFound
        if alert not in self._pages:
            # HTML in the text was escaped by the Markdown parser
            content = Markup(_MARKDOWN.render(self.texts[alert]))  # noqa: S704 - as said
            heading = "" if content.startswith("<h1>") else alert
            self._pages[alert] = _rendered(alert, heading=heading, content=content)
        return _answer(self._pages[alert])


async def _with_slash(_request: web.Request) -> web.Response:
    # relative, because a proxy may serve it under any path
    return web.Response(status=308, headers={"Location": "runbooks/"})


def _rendered(title: str, **values: object) -> str:
    full = f"{title} - quotascope"
    return render("runbook.html", None, title=full, root="../", here="runbooks", **values)


def _answer(text: str) -> web.Response:
    headers = {"Content-Security-Policy": POLICY}
    return web.Response(text=text, content_type="text/html", headers=headers)
