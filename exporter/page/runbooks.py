"""The runbooks of the alerts as pages, so that an alert can lead to what its reader has to do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final
from xml.etree.ElementTree import Element, fromstring

from aiohttp import web
from markdown_it import MarkdownIt

from quotascope.pages.markup import element, written

POLICY: Final = (
    "default-src 'none'; style-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but our own style."""
_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")
"""HTML in a text is shown as it is written."""


class Runbooks:
    """
    Pages below ``/runbooks/``; addresses in them are relative, for a proxy may put them under any path.

    Args:
        texts: Markdown by the name of the alert.

    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._page = cache(self._made)

    def add_to(self, router: web.UrlDispatcher) -> None:
        """All addresses; none where there is no runbook."""
        if self._texts:
            router.add_get("/runbooks/", self.index)
            router.add_get("/runbooks/{alert}", self.runbook)

    async def index(self, _request: web.Request) -> web.Response:
        """Every runbook there is."""
        links = (element("li", element("a", name, href=name)) for name in self._texts)
        return _answer(_framed("Runbooks", element("ul", *links)))

    async def runbook(self, request: web.Request) -> web.Response:
        """The runbook of one alert."""
        alert = request.match_info["alert"]
        if alert not in self._texts:
            raise web.HTTPNotFound
        return _answer(self._page(alert))

    def _made(self, alert: str) -> str:
        rendered = _MARKDOWN.render(self._texts[alert])
        # as XML, so that what is not well formed is no page
        return _framed(alert, *fromstring(f"<main>{rendered}</main>"))  # noqa: S314 - of our own package, rendered without HTML


def _framed(title: str, *content: Element) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} - quotascope"),
        element("link", rel="stylesheet", href="../-/page.css"),
    )
    shown = content if content[0].tag == "h1" else (element("h1", title), *content)
    others = element("li", element("a", "all runbooks", href="."))
    here = element("li", element("a", "who is closest to their limits", href=".."))
    footer = element("footer", element("ul", here, others))
    main = element("main", element("article", *shown), footer)
    return written(element("html", head, element("body", main), lang="en"))


def _answer(text: str) -> web.Response:
    headers = {"Content-Security-Policy": POLICY}
    return web.Response(text=text, content_type="text/html", headers=headers)
