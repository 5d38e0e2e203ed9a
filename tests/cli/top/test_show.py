"""What `quotascope top` does when a look fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType
from tests.exporter.examples import snapshot, usage
from tests.exporter.sources.http.misbehaving import answering, serving

from quotascope.cli.terminal import Draw
from quotascope.cli.top import show
from quotascope.cli.top.choices import Choices
from quotascope.cli.top.show import Read
from quotascope.exporter.api.client import Observed, exporter_target, read_recent
from quotascope.exporter.api.documents import encoded, entities_document
from quotascope.exporter.diagnosis.trails import RECENT_STEPS, STEP_SECONDS, Trails
from quotascope.exporter.errors import LimitsError
from quotascope.exporter.page.owners import Owners
from quotascope.exporter.page.query import EntityQuery, find_entities
from quotascope.exporter.snapshot import Snapshot


class _Screen:
    """In the place of the terminal: what was drawn, as text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.console = Console(width=100, height=20)
        self.drawn: list[str] = []
        monkeypatch.setattr(show, "full_screen", self._full_screen)

    @contextmanager
    def _full_screen(self, _: Console) -> Iterator[Draw]:
        yield self._draw

    def _draw(self, what: RenderableType) -> None:
        with self.console.capture() as capture:
            self.console.print(what)
        self.drawn.append(capture.get())


@asynccontextmanager
async def _reading(*looks: Snapshot | Exception) -> AsyncIterator[Read]:
    coming = iter(looks)

    async def read() -> Observed:
        look = next(coming)
        if isinstance(look, Exception):
            raise look
        return look, ()

    yield read


def test_a_defect_ends_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen shows why a read failed, and goes on; any other error ends it and is raised."""
    screen = _Screen(monkeypatch)
    looks = snapshot(), LimitsError("away"), snapshot(), TypeError("a defect")
    with pytest.raises(TypeError, match="a defect"):
        asyncio.run(show.watch(_reading(*looks), screen.console, Choices(), 0.0))
    old = ["the figures are old: away" in each for each in screen.drawn]
    assert old == [False, True, False]


@pytest.mark.parametrize("known", [True, False])
async def test_the_screen_begins_with_what_the_exporter_remembers(*, known: bool) -> None:
    """The minutes before the command began, and so does the one table without a terminal; an answer that is none of ours is no history, and no failure."""
    full = usage(limit=100.0, usage=50.0)
    now = snapshot(full)
    trails = Trails()
    for back in range(10, -1, -1):
        trails.note(replace(now, taken_at=now.taken_at - STEP_SECONDS * back))
    page = find_entities(now, trails, EntityQuery(), Owners())
    body = encoded(entities_document(page)) if known else b'{"entities": [5]}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with serving(answering(head, body)) as url:
        recent = await read_recent(exporter_target(url))
        console = Console(width=140)
        with console.capture() as capture:
            await show.print_once(_reading(now), console, Choices(), exporter_target(url))
    screen = show._Show((now, ()), Choices())
    screen.recall(recent)
    seen = 11 if known else 1
    assert screen.trails.of(full) == [None] * (RECENT_STEPS - seen) + [0.5] * seen
    assert f" {'▄' * seen} " in capture.get()
