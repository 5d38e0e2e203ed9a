"""The text of a scrape, written once for all who ask for the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from .exposition import gzipped
from .exposition.renderer import Renderer
from .exposition.text import Format
from .snapshot import Snapshot

_Key: TypeAlias = tuple[int, Format, bool]
"""Which snapshot, in which format, compressed or not."""


class Rendering:
    """
    Bodies of answers, made in threads, so that a large cluster's text does not keep health checks waiting.

    Whoever asks for what is being made already waits for that; nothing is kept once it is made. ``clock`` gives Unix
    time in seconds.
    """

    def __init__(self, renderer: Renderer, clock: Callable[[], float]) -> None:
        self._renderer = renderer
        self._clock = clock
        self._under_way: dict[_Key, asyncio.Task[bytes]] = {}

    async def body(
        self, snapshot: Snapshot, text_format: Format, *, compressed: bool
    ) -> bytes:
        """The snapshot in this format."""
        key = id(snapshot), text_format, compressed
        task = self._under_way.get(key)
        if task is None:
            # it holds the snapshot, whose identity is that of no other one as long
            made = self._compressed if compressed else self._text
            task = asyncio.create_task(made(snapshot, text_format))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(task)  # the others still want it

    async def _text(self, snapshot: Snapshot, text_format: Format) -> bytes:
        return await asyncio.to_thread(
            self._renderer.render, snapshot, self._clock(), text_format
        )

    async def _compressed(self, snapshot: Snapshot, text_format: Format) -> bytes:
        text = await self.body(snapshot, text_format, compressed=False)
        return await asyncio.to_thread(gzipped, text)
