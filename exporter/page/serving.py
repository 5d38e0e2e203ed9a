"""How the page and its JSON are asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from aiohttp import web

from ..collection import Collection
from ..config import CollectionConfig
from ..diagnosis.trails import STEP_SECONDS, Trails
from ..errors import InvalidQuery
from ..snapshot import Snapshot
from .page import POLICY, entity_page, first_page
from .query import Query, read_query
from .script import SCRIPT
from .style import STYLE
from .view import view_of

MAX_AGE_SECONDS: Final = STEP_SECONDS
"""A snapshot that old is still good enough: who looks asks no broker as long as somebody scrapes."""

_Made = TypeVar("_Made")


class Pages:
    """
    The page, its JSON, and what both remember of the last minutes.

    One answer is made at a time, in a thread, so that people who look do not keep scrapers waiting. ``clock`` gives the event loop's
    time in seconds: whether a snapshot is old must not depend on a clock that can be set. ``runbooks`` says whether
    they are served, so that the page may lead to them.
    """

    def __init__(
        self,
        collection: Collection,
        config: CollectionConfig,
        cluster: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        runbooks: bool = False,
    ) -> None:
        self._collection = collection
        self._runbooks = runbooks
        self._timeout_seconds = config.timeout_seconds
        self._cluster = cluster
        self._clock = clock
        self.trails = Trails()
        """How full limits were in the last minutes."""
        self._noted: Snapshot | None = None
        self._one_at_a_time = asyncio.Lock()

    def configure(self, config: CollectionConfig, cluster: str | None) -> None:
        """Wait as long, and call the cluster so, from the next request on."""
        self._timeout_seconds = config.timeout_seconds
        self._cluster = cluster

    def add_to(self, router: web.UrlDispatcher) -> None:
        """All that people and their browsers ask for."""
        router.add_get("/", self.page)
        router.add_get("/-/page.css", self.style)
        router.add_get("/-/page.js", self.script)

    async def follow(self, every_seconds: float = STEP_SECONDS / 3) -> None:
        """Remember how full limits are, as snapshots are made for whomever; until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            await self.in_turn(lambda: None)

    async def page(self, request: web.Request) -> web.Response:
        """The page for people; with a query that cannot be read, what is shown without one, and why."""
        query, problem = Query(), ""
        try:
            query = read_query(request.query)
        except InvalidQuery as error:
            problem = str(error)
        snapshot = await self.snapshot()
        if snapshot is None:
            text = first_page(self._cluster, runbooks=self._runbooks)
        else:
            text = await self.in_turn(self._page, snapshot, query, problem)
        return web.Response(
            text=text,
            content_type="text/html",
            status=400 if problem else 200,
            headers={"Content-Security-Policy": POLICY},
        )

    async def style(self, _request: web.Request) -> web.Response:
        """How the page looks."""
        return web.Response(text=STYLE, content_type="text/css")

    async def script(self, _request: web.Request) -> web.Response:
        """What makes it follow."""
        return web.Response(text=SCRIPT, content_type="text/javascript")

    async def fresh_snapshot(self) -> Snapshot:
        """A snapshot as a scrape gets it now."""
        return await self._collection.snapshot(self._timeout_seconds)

    async def snapshot(self) -> Snapshot | None:
        """The latest snapshot, or a new one when that is old; None before the first collection."""
        latest = self._collection.latest
        age = self._clock() - self._collection.latest_began
        if latest is None or age <= MAX_AGE_SECONDS:
            return latest
        return await self.fresh_snapshot()

    async def in_turn(self, work: Callable[..., _Made], *given: object) -> _Made:
        """The result of work that is done in a thread, one at a time, when the trails know the latest snapshot."""

        def done() -> _Made:
            self._note_latest()
            return work(*given)

        async with self._one_at_a_time:
            return await asyncio.to_thread(done)

    def _note_latest(self) -> None:
        """Remember the last snapshot, once; an older one that somebody still looks at is none of the trails' any more."""
        latest = self._collection.latest
        if latest is not None and latest is not self._noted:
            self.trails.note(latest)
            self._noted = latest

    def _page(self, snapshot: Snapshot, query: Query, problem: str) -> str:
        view = view_of(snapshot, self.trails, query)
        return entity_page(view, self._cluster, problem, runbooks=self._runbooks)
