"""The runbooks of the alerts as pages, so that an alert can link to what its reader has to do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from functools import cache
from typing import TYPE_CHECKING, Final

from aiohttp import web
from markupsafe import Markup

from quotascope.pages.words import moment

from ..diagnosis.units import entity_name, rule_or_cause, type_name
from .entity import asked_entity
from .filling import filled
from .render import entity_address, name, render
from .serving import Pages

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but our own style and icon."""
_MOST: Final = 20
"""Most throttle episodes above a runbook."""


@cache
def _markdown() -> MarkdownIt:
    """Return the renderer of Markdown, which shows HTML in a text as it is written."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - where no runbook is asked for, 40 ms of each start

    return MarkdownIt("commonmark", {"html": False}).enable("table")


class Runbooks:
    """
    Pages below ``/runbooks/``; addresses in them are relative, because a proxy may serve them under any path.

    With ``user`` or ``client_id`` in its address a runbook has these names in its commands and queries (`filled`), and
    begins with the time since which they are throttled.

    Args:
        texts: Markdown by the name of the alert.
        summaries: Severity and summary by the name of the alert.
        pages: The source of entities and their throttle episodes; None leaves runbooks without them.

    """

    def __init__(
        self,
        texts: Mapping[str, str],
        summaries: Mapping[str, tuple[str, str]] | None = None,
        pages: Pages | None = None,
    ) -> None:
        self.texts = texts
        """Markdown by the name of the alert."""
        self._summaries = summaries or {}
        self._pages = pages
        self._general: dict[str, str] = {}
        """Runbooks without the names of an entity as HTML, by the name of the alert."""

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the addresses of the runbooks, if there are any."""
        if self.texts:
            router.add_get("/runbooks", _with_slash)
            router.add_get("/runbooks/", self.index)
            router.add_get("/runbooks/{alert}", self.runbook)

    async def index(self, _request: web.Request) -> web.Response:
        """Answer with the list of all runbooks."""
        rows = [(alert, *self._summaries.get(alert, ("", ""))) for alert in self.texts]
        return _answer(_rendered("Runbooks", heading="Runbooks", names=rows))

    async def runbook(self, request: web.Request) -> web.Response:
        """Return the runbook of one alert."""
        alert = request.match_info["alert"]
        if alert not in self.texts:
            raise web.HTTPNotFound
        user, client_id = asked_entity(request.query)
        if self._pages is not None and (user or client_id):
            return _answer(await self._entity_runbook(alert, user, client_id, self._pages))
        if alert not in self._general:
            self._general[alert] = _rendered(alert, **_content(alert, self.texts[alert]))
        return _answer(self._general[alert])

    async def _entity_runbook(self, alert: str, user: str | None, client_id: str | None, pages: Pages) -> str:
        """Return a runbook as HTML with the names of an entity and its throttle episodes."""
        snapshot = await pages.snapshot()

        def rendered() -> str:
            limits = None if snapshot is None else snapshot.limits
            episodes = () if snapshot is None else pages.explain(snapshot, user, client_id).episodes
            text = filled(self.texts[alert], user, client_id, limits)
            return _rendered(
                alert,
                **_content(alert, text),
                entity=entity_name(user or "", client_id or ""),
                address=entity_address(user, client_id, "../entity"),
                since=[
                    f"{type_name(episode.usage.entity.quota_type)}, node {name(episode.usage.entity.broker)}, "
                    f"{rule_or_cause(episode.usage)}: since "
                    f"{moment(1_000 * episode.began_at, UTC)}"
                    for episode in episodes[:_MOST]
                    if episode.ongoing
                ],
            )

        return await pages.in_turn(rendered)


def _content(alert: str, text: str) -> dict[str, str]:
    """Return a runbook as HTML, and a heading for one that has none."""
    content = Markup(_markdown().render(text))  # noqa: S704 - the Markdown parser escapes HTML in the text
    return {"heading": "" if content.startswith("<h1>") else alert, "content": content}


async def _with_slash(_request: web.Request) -> web.Response:
    """Redirect to the list of all runbooks."""
    # relative, because a proxy may serve it under any path
    return web.Response(status=308, headers={"Location": "runbooks/"})


def _rendered(title: str, **values: object) -> str:
    """Return a page of runbooks as HTML."""
    full = f"{title} - quotascope"
    return render("runbook.html", None, title=full, root="../", here="runbooks", **values)


def _answer(text: str) -> web.Response:
    """Return the answer with a page of runbooks."""
    headers = {"Content-Security-Policy": POLICY}
    return web.Response(text=text, content_type="text/html", headers=headers)
