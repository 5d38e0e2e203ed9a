"""
The routes of the JSON API.

Logins, rate limits and places for requests are those of every request (`exporter/web`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from ..errors import InvalidQuery
from ..page.entity import asked_entity
from ..page.query import EntityQuery, EpisodeQuery, PartQuery
from ..page.rules import RuleQuery, find_rules
from ..page.serving import Pages
from ..page.team_list import TeamQuery, find_teams
from ..snapshot import Snapshot
from ..untrusted import shown
from .answers import (
    changes_document,
    entities_document,
    episodes_document,
    explain_document,
    health_document,
    rules_document,
    runbooks_document,
    snapshot_document,
    teams_document,
)
from .documents import encoded
from .llms import llms_txt
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
        """Add all routes."""
        for name in ANSWERS.keys() - {"runbooks"}:  # these need no snapshot
            router.add_get(f"{PREFIX}{name}", self.answer, name=name)
        router.add_get(f"{PREFIX}runbooks", self.runbooks)
        router.add_get(f"{PREFIX}openapi.json", self.description)
        router.add_get("/llms.txt", self.guide)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer with one document; 400 for a parameter that cannot be used, 503 before the first collection."""
        name = request.match_info.route.name or ""
        try:
            answer = self._answer(name, request.query)
        except InvalidQuery as error:
            return _json(encoded({"error": str(error)}), status=400)
        snapshot: Snapshot | None
        if name == "snapshot":  # `quotascope top` shows figures of this moment
            snapshot = await self._pages.fresh_snapshot()
        else:
            snapshot = await self._pages.snapshot()
        if snapshot is None:
            return _json(encoded({"error": _NOTHING_YET}), status=503)
        return _json(await self._pages.in_turn(lambda: encoded(answer(snapshot))))

    async def runbooks(self, request: web.Request) -> web.Response:
        """Return the runbooks; needs no snapshot."""
        try:
            _check_names("runbooks", request.query)
            query = EntityQuery.read(request.query)
        except InvalidQuery as error:
            return _json(encoded({"error": str(error)}), status=400)
        return _json(encoded(runbooks_document(self._runbooks, query)))

    async def description(self, _request: web.Request) -> web.Response:
        """Return the API as OpenAPI describes it."""
        return _json(encoded(openapi()))

    async def guide(self, _request: web.Request) -> web.Response:
        """Return the paths and their parameters as text for assistants."""
        return web.Response(text=llms_txt())

    def _answer(self, name: str, parameters: Mapping[str, str]) -> Answer:  # noqa: PLR0911  # one for each path
        """Return a function that makes a document of a snapshot. Raises ``InvalidQuery``."""
        _check_names(name, parameters)
        match name:
            case "entities":
                query = EntityQuery.read(parameters)
                return lambda snapshot: entities_document(self._pages.find(snapshot, query))
            case "episodes":
                episode_query, episodes = EpisodeQuery.read(parameters), self._pages.episodes
                return lambda snapshot: episodes_document(snapshot, episodes, episode_query)
            case "rules":
                rule_query = RuleQuery.read(parameters)
                return lambda snapshot: rules_document(find_rules(snapshot, rule_query))
            case "teams":
                team_query = TeamQuery.read(parameters)
                return lambda snapshot: teams_document(find_teams(snapshot, team_query))
            case "changes":
                shown_part = PartQuery.read(parameters)
                return lambda snapshot: changes_document(snapshot, shown_part)
            case "explain":
                part, entity = EntityQuery.read(parameters), asked_entity(parameters)
                return lambda snapshot: explain_document(self._pages.explain(snapshot, *entity), part)
            case "health":
                return health_document
            case _:
                return snapshot_document


def _check_names(name: str, parameters: Mapping[str, str]) -> None:
    """
    Raise ``InvalidQuery`` for a parameter that the path does not have.

    An answer without the filter would be misleading.
    """
    allowed = ANSWERS[name][1]
    for parameter in parameters:
        if parameter not in allowed:
            raise InvalidQuery(
                f"unknown parameter {shown(parameter)!r}: {PREFIX}{name} has {', '.join(allowed) or 'no parameters'}"
            )


def _json(body: bytes, status: int = 200) -> web.Response:
    """Return the answer with a JSON document."""
    return web.Response(body=body, content_type="application/json", status=status)
