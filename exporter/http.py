"""The paths that the exporter answers, and the rendering of scrapes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from .alert_terms import DEFAULT_TERMS, AlertTerms
from .api.handlers import Api
from .collection import Collection
from .config import CollectionConfig, Config
from .exposition import Renderer, TextFormat, accepts_gzip, choose_format, gzipped
from .page.runbooks import Runbooks
from .page.serving import Pages
from .snapshot import Snapshot
from .steady import steady
from .threads import RENDERING
from .web.pieces import Pieces

log = structlog.get_logger()

TIMEOUT_HEADER: Final = "X-Prometheus-Scrape-Timeout-Seconds"
_LONGEST_TIMEOUT_SECONDS: Final = 300.0
"""The longest timeout that is accepted from a scraper."""
_SHORTEST_TIMEOUT_SECONDS: Final = 1.0
"""The shortest: no agent answers within a millisecond, and each early answer costs a join."""


class Handlers:
    """
    The handlers of ``/metrics``, the pages and health checks, all from snapshots, and of the runbooks.

    ``runbooks`` are Markdown by the name of the alert, ``summaries`` their severities and summaries; ``clock`` returns
    steady seconds, by which numbers age.
    """

    def __init__(
        self,
        collection: Collection,
        config: Config,
        runbooks: Mapping[str, str] | None = None,
        summaries: Mapping[str, tuple[str, str]] | None = None,
        clock: Callable[[], float] = steady,
        *,
        terms: AlertTerms = DEFAULT_TERMS,
    ) -> None:
        self._collection = collection
        self._config = config
        self.pages = Pages(collection, config, has_runbooks=bool(runbooks), terms=terms)
        """The pages and their JSON."""
        self._runbooks = Runbooks(runbooks or {}, summaries, self.pages)
        self._rendering = Rendering(Renderer(config.cluster), clock)
        self._clock = clock

    def configure(self, config: Config, terms: AlertTerms) -> None:
        """Use another configuration, and other thresholds and teams, from the next request on."""
        if config.cluster != self._config.cluster:
            self._rendering = Rendering(Renderer(config.cluster), self._clock)
        self._config = config
        self.pages.configure(config, terms)

    def app(self) -> web.Application:
        """Return the application with all routes."""
        app = web.Application(middlewares=[_answer_errors])
        self.pages.add_to(app.router)
        Api(self.pages, self._runbooks.texts).add_to(app.router)
        self._runbooks.add_to(app.router)
        app.router.add_get("/metrics", self.metrics)
        app.router.add_get("/-/healthy", self.healthy)
        app.router.add_get("/-/ready", self.ready)
        return app

    async def metrics(self, request: web.Request) -> web.Response:
        """Answer a scrape, in the format and encoding that it asks for."""
        timeout = scrape_timeout(request.headers.get(TIMEOUT_HEADER), self._config.collection)
        snapshot = await self._collection.snapshot(timeout)
        chosen = choose_format(request.headers.get("Accept", ""))
        compressed = accepts_gzip(request.headers.get("Accept-Encoding", ""))
        body = await self._rendering.body(snapshot, chosen, compressed=compressed)
        headers = {
            "Content-Type": chosen.content_type,
            "Vary": "Accept, Accept-Encoding",
        }
        if compressed:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=Pieces(body), headers=headers)

    async def healthy(self, _request: web.Request) -> web.Response:
        """Return whether the process lives."""
        return web.Response(text="healthy\n")

    async def ready(self, _request: web.Request) -> web.Response:
        """Return whether the first collection is done, whatever it found."""
        if self._collection.latest is None:
            text = "not ready: the first collection is under way\n"
            return web.Response(status=503, text=text)
        return web.Response(text="ready\n")


def scrape_timeout(header: str | None, config: CollectionConfig) -> float:
    """
    Return the seconds that a collection may take.

    That is a little less than the scraper waits, but at least half of its timeout, and five minutes at most. A timeout
    below a second counts as a second.
    """
    try:
        seconds = float(header or "")
    except ValueError:
        return config.timeout_seconds
    if not 0 < seconds < float("inf"):
        return config.timeout_seconds
    seconds = max(seconds, _SHORTEST_TIMEOUT_SECONDS)
    patience = max(seconds - config.margin_seconds, seconds / 2)
    return min(patience, _LONGEST_TIMEOUT_SECONDS)


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return the answer of the handler, or a plain text about its error; only defects are logged."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        text = f"{error.status} {error.reason}: see / for what there is\n"
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        return web.Response(status=error.status, text=text, headers=allow)
    except Exception:
        log.exception("a request failed", path=request.path)
        return web.Response(status=500, text="internal error: see the log\n")


_Key: TypeAlias = tuple[int, TextFormat, bool]
"""Id and format of a snapshot, and whether it is compressed."""


class Rendering:
    """
    Renders bodies in threads, so that the text of a large cluster does not delay health checks.

    Scrapes that want the same body at the same time share it; it is not kept afterwards. ``clock`` returns steady
    seconds, by which numbers age.
    """

    def __init__(self, renderer: Renderer, clock: Callable[[], float]) -> None:
        self._renderer = renderer
        self._clock = clock
        self._under_way: dict[_Key, asyncio.Task[bytes]] = {}

    async def body(self, snapshot: Snapshot, text_format: TextFormat, *, compressed: bool) -> bytes:
        """Return the snapshot in this format."""
        run, now_seconds = asyncio.get_running_loop().run_in_executor, snapshot.time_at(self._clock())

        async def made() -> bytes:
            if compressed:  # from the plain body, which other scrapes may share
                return await run(RENDERING, gzipped, await self.body(snapshot, text_format, compressed=False))
            return await run(RENDERING, self._renderer.render, snapshot, now_seconds, text_format)

        key = id(snapshot), text_format, compressed
        task = self._under_way.get(key)
        if task is None:
            # the task holds the snapshot, so that no other snapshot gets its id meanwhile
            task = asyncio.create_task(made())
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(task)  # the other scrapes still want it
