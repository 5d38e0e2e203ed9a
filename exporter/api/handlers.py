"""The routes of the JSON API. Logins, rate limits and places for requests are those of every request (`exporter/web`)."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from ..errors import InvalidQuery
from ..page import Pages
from ..page.query import EntityQuery, read_query
from ..snapshot import Snapshot
from .documents import (
    encoded,
    entities_answer,
    health_document,
    rules_answer,
    snapshot_document,
)

_NOTHING_YET = "the first collection is under way: ask again in a few seconds"


class Api:
    """Answers from the same snapshots as the page, one at a time, in a thread."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def add_to(self, router: web.UrlDispatcher) -> None:
        """All routes."""
        for name in ("entities", "rules", "health", "snapshot"):
            router.add_get(f"/api/v1/{name}", self.answer, name=name)

    async def answer(self, request: web.Request) -> web.Response:
        """One document; 400 for a parameter that cannot be used, 503 before the first collection."""
        try:
            query = read_query(request.query)
        except InvalidQuery as error:
            return _json(encoded({"error": str(error)}), status=400)
        name = request.match_info.route.name or ""
        snapshot: Snapshot | None
        if name == "snapshot":  # `quotascope top` shows figures of this moment
            snapshot = await self._pages.fresh_snapshot()
        else:
            snapshot = await self._pages.snapshot()
        if snapshot is None:
            return _json(encoded({"error": _NOTHING_YET}), status=503)
        return _json(
            await self._pages.in_turn(partial(self._document, name, snapshot, query))
        )

    def _document(self, name: str, snapshot: Snapshot, query: EntityQuery) -> bytes:
        answer: object
        match name:
            case "entities":
                answer = entities_answer(self._pages.found(snapshot, query))
            case "rules":
                answer = rules_answer(snapshot, query)
            case "health":
                answer = health_document(snapshot)
            case _:
                answer = snapshot_document(snapshot)
        return encoded(answer)


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, content_type="application/json", status=status)
