"""Serves the pages, their style, script and icon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Final, TypeVar

from aiohttp import web

from ..alert_terms import DEFAULT_TERMS, AlertTerms
from ..collection import Collection
from ..config import Config
from ..diagnosis.episodes import Episodes
from ..diagnosis.trails import STEP_SECONDS, Trails
from ..errors import InvalidQuery
from ..snapshot import Snapshot
from .entity import EntityResult, asked_entity, entity_page, find_entity
from .page import entity_list_page
from .query import EntityQuery, QueryResult, find_entities
from .render import POLICY, PageFrame
from .rules import RuleQuery, find_rules, rules_page
from .team_list import TeamQuery, find_teams, teams_page
from .teams import Teams

MAX_AGE_SECONDS: Final = STEP_SECONDS
"""The age up to which a snapshot is shown: while Prometheus scrapes, the page causes no reads."""
_ASSETS: Final = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

_Made = TypeVar("_Made")
_Query = TypeVar("_Query", EntityQuery, RuleQuery, TeamQuery)


class Pages:
    """
    The pages, and what they and the JSON API show of the last minutes.

    One answer is made at a time, in a thread, so that pages do not delay scrapes. ``clock`` returns the event loop's
    time in seconds: the age of a snapshot must not depend on a clock that can be set.
    """

    def __init__(
        self,
        collection: Collection,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        *,
        has_runbooks: bool = False,
        terms: AlertTerms = DEFAULT_TERMS,
    ) -> None:
        self._collection = collection
        self._has_runbooks = has_runbooks
        self._clock = clock
        self._trails = Trails()
        self.episodes = Episodes()
        """Throttle episodes; only for work done ``in_turn``."""
        self._noted: Snapshot | None = None
        self._one_at_a_time = asyncio.Lock()
        self.configure(config, terms)

    def configure(self, config: Config, terms: AlertTerms) -> None:
        """Use another configuration, and other thresholds and teams, from the next request on."""
        self._timeout_seconds = config.collection.timeout_seconds
        self._frame = PageFrame(
            cluster=config.cluster,
            runbooks=self._has_runbooks,
            grafana_url=config.grafana_url,
            teams=bool(terms.teams),
        )
        self._teams = Teams(terms.teams)

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add all paths."""
        router.add_get("/", self.page)
        router.add_get("/entity", self.entity)
        router.add_get("/rules", self.rules)
        router.add_get("/teams", self.teams)
        for file, kind in _ASSETS.items():
            text = files(__package__).joinpath(file).read_text("utf-8")
            router.add_get(f"/-/{file}", partial(_asset, text, kind))

    async def follow(self, every_seconds: float = STEP_SECONDS / 3) -> None:
        """Remember the utilization of each snapshot for the last minutes, and throttle episodes; until canceled."""
        while True:
            await asyncio.sleep(every_seconds)
            await self.note()

    async def note(self) -> None:
        """Make the latest snapshot part of the trails and episodes."""
        async with self._one_at_a_time:
            await asyncio.to_thread(self._note)

    def _note(self) -> None:
        """Make the latest snapshot part of the trails and episodes, unless it is already."""
        latest = self._collection.latest
        if latest is not None and latest is not self._noted:
            self._trails.note(latest)
            self.episodes.note(latest)
            self._noted = latest

    async def page(self, request: web.Request) -> web.Response:
        """Return the entities."""
        query, problem = _asked(EntityQuery, request)
        return await self._page(
            lambda snapshot: entity_list_page(
                None if snapshot is None else self.find(snapshot, query), self._frame, problem
            ),
            problem,
        )

    async def entity(self, request: web.Request) -> web.Response:
        """Return the page of one user and client-id."""
        user, client_id = asked_entity(request.query)
        return await self._page(
            lambda snapshot: entity_page(
                None if snapshot is None else self.explain(snapshot, user, client_id), self._frame
            )
        )

    async def rules(self, request: web.Request) -> web.Response:
        """Return all rules."""
        query, problem = _asked(RuleQuery, request)
        return await self._page(
            lambda snapshot: rules_page(
                None if snapshot is None else find_rules(snapshot, query), self._frame, problem
            ),
            problem,
        )

    async def teams(self, request: web.Request) -> web.Response:
        """Return all teams."""
        query, problem = _asked(TeamQuery, request)
        return await self._page(
            lambda snapshot: teams_page(
                None if snapshot is None else find_teams(snapshot, query), self._frame, problem
            ),
            problem,
        )

    async def _page(self, render_page: Callable[[Snapshot | None], str], problem: str = "") -> web.Response:
        """Return the answer with a page that ``render_page`` makes of a snapshot."""
        snapshot = await self.snapshot()
        return web.Response(
            text=await self.in_turn(lambda: render_page(snapshot)),
            content_type="text/html",
            status=400 if problem else 200,
            headers={"Content-Security-Policy": POLICY},
        )

    async def fresh_snapshot(self) -> Snapshot:
        """Return a snapshot as a scrape gets it now."""
        return await self._collection.snapshot(self._timeout_seconds)

    async def snapshot(self) -> Snapshot | None:
        """Return the latest snapshot, or a new one when that is old; None before the first collection."""
        latest = self._collection.latest
        age = self._clock() - self._collection.latest_began
        if latest is None or age <= MAX_AGE_SECONDS:
            return latest
        return await self.fresh_snapshot()

    async def in_turn(self, work: Callable[[], _Made]) -> _Made:
        """
        Return the result of work that is done in a thread, one at a time.

        Before it, the latest snapshot becomes part of the trails and episodes.
        """

        def done() -> _Made:
            self._note()
            return work()

        async with self._one_at_a_time:
            return await asyncio.to_thread(done)

    def find(self, snapshot: Snapshot, query: EntityQuery) -> QueryResult:
        """Return the entities that a query selects, with their utilization of the last minutes."""
        return find_entities(snapshot, self._trails, query, self._teams)

    def explain(self, snapshot: Snapshot, user: str | None, client_id: str | None) -> EntityResult:
        """Return the rules for a user and client-id, and the entities under which they are measured."""
        return find_entity(snapshot, self._trails, self.episodes, user, client_id)


def _asked(kind: type[_Query], request: web.Request) -> tuple[_Query, str]:
    """Return the query of a request and an empty text, or a default query and the error of an invalid one."""
    try:
        return kind.read(request.query), ""
    except InvalidQuery as error:
        return kind(), str(error)


async def _asset(text: str, kind: str, _request: web.Request) -> web.Response:
    return web.Response(text=text, content_type=kind)
