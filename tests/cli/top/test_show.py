"""What `quotascope top` does when a look fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from rich.console import Console, RenderableType
from tests.exporter.examples import snapshot

from quotascope.cli.terminal import Draw
from quotascope.cli.top import show
from quotascope.cli.top.choices import Choices
from quotascope.cli.top.show import Read
from quotascope.exporter.api.client import Observed
from quotascope.exporter.errors import LimitsError
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
