"""The routes of the JSON API. Logins, rate limits and places for requests are those of every request (`exporter/web`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from ..errors import InvalidQuery
from ..page import Pages
from ..page.entity import asked_entity
from ..page.query import EntityQuery, EpisodeQuery
from ..page.rules import RuleQuery, find_rules
from ..snapshot import Snapshot
from ..untrusted import shown
from .documents import (
    encoded,
    entities_document,
    episodes_document,
    explain_document,
    health_document,
    rules_document,
    runbooks_document,
    snapshot_document,
)
from .openapi import ANSWERS, openapi

PREFIX: Final = "/api/v1/"
_NOTHING_YET = "the first collection is under way: ask again in a few seconds"
Answer = Callable[[Snapshot], object]


class Api:
    """
    Answers from the same snapshots as the page, one at a time, in a thread.

    ``runbooks`` are Markdown by the name of the alert.
    """

    def __init__(self, pages: Pages, runbooks: Mapping[str, str] | None = None) -> None:
        self._pages = pages
        self._runbooks = runbooks or {}

    def add_to(self, router: web.UrlDispatcher) -> None:
        """All routes."""
        for name in ("entities", "episodes", "rules", "explain", "health", "snapshot"):
            router.add_get(f"{PREFIX}{name}", self.answer, name=name)
        router.add_get(f"{PREFIX}runbooks", self.runbooks)
        router.add_get(f"{PREFIX}openapi.json", self.description)

    async def answer(self, request: web.Request) -> web.Response:
        """One document; 400 for a parameter that cannot be used, 503 before the first collection."""
        name = request.match_info.route.name or ""
        try:
            made = self._answer(name, request.query)
        except InvalidQuery as error:
            return _json(encoded({"error": str(error)}), status=400)
        snapshot: Snapshot | None
        if name == "snapshot":  # `quotascope top` shows figures of this moment
            snapshot = await self._pages.fresh_snapshot()
        else:
            snapshot = await self._pages.snapshot()
        if snapshot is None:
            return _json(encoded({"error": _NOTHING_YET}), status=503)
        return _json(await self._pages.in_turn(lambda: encoded(made(snapshot))))

    async def runbooks(self, request: web.Request) -> web.Response:
        """The runbooks; needs no snapshot."""
        try:
            _check_names("runbooks", request.query)
            query = EntityQuery.read(request.query)
        except InvalidQuery as error:
            return _json(encoded({"error": str(error)}), status=400)
        return _json(encoded(runbooks_document(self._runbooks, query)))

    async def description(self, _request: web.Request) -> web.Response:
        """The API as OpenAPI describes it."""
        return _json(encoded(openapi()))

    def _answer(self, name: str, given: Mapping[str, str]) -> Answer:
        """What makes a document of a snapshot. Raises ``InvalidQuery``."""
        _check_names(name, given)
        match name:
            case "entities":
                query = EntityQuery.read(given)
                return lambda now: entities_document(self._pages.found(now, query))
            case "episodes":
                asked, known = EpisodeQuery.read(given), self._pages.episodes
                return lambda now: episodes_document(now, known, asked)
            case "rules":
                wanted = RuleQuery.read(given)
                return lambda now: rules_document(find_rules(now, wanted))
            case "explain":
                part, who = EntityQuery.read(given), asked_entity(given)
                return lambda now: explain_document(self._pages.explained(now, *who), part)
            case "health":
                return health_document
            case _:
                return snapshot_document


def _check_names(name: str, given: Mapping[str, str]) -> None:
    """Raise ``InvalidQuery`` for a parameter that the path does not have: with a filter ignored, an answer would be taken for what it is not."""
    known = ANSWERS[name][1]
    for parameter in given:
        if parameter not in known:
            raise InvalidQuery(
                f"unknown parameter {shown(parameter)!r}: {PREFIX}{name} has {', '.join(known) or 'no parameters'}"
            )


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, content_type="application/json", status=status)
