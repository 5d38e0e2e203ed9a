from __future__ import annotations

import asyncio
import gzip
import threading

import pytest
from tests.exporter.examples import NOW, snapshot, usage

from quotascope.exporter.exposition import Renderer
from quotascope.exporter.exposition.text import OPENMETRICS, TEXT, TextFormat
from quotascope.exporter.http import Rendering
from quotascope.exporter.snapshot import Snapshot


class Held(Renderer):
    """A renderer that waits until it may write."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.written: list[TextFormat] = []

    def render(
        self, snapshot: Snapshot, now: float, text_format: TextFormat = TEXT
    ) -> bytes:
        """The text, when allowed to."""
        self.written.append(text_format)
        self.go.wait(60)
        return super().render(snapshot, now, text_format)


async def test_the_same_is_written_once() -> None:
    """Plain and compressed come of one text; another format or snapshot is another text."""
    held = Held()
    rendering = Rendering(held, lambda: NOW)
    one, other = snapshot(usage(usage=1.0)), snapshot(usage(usage=2.0))
    asked = [
        asyncio.create_task(rendering.body(which, text_format, compressed=compressed))
        for which in (one, other)
        for text_format in (TEXT, OPENMETRICS)
        for compressed in (False, True, True)
    ]
    await asyncio.sleep(0)
    held.go.set()
    bodies = await asyncio.gather(*asked)
    assert sorted(each.content_type for each in held.written) == sorted(
        2 * [TEXT.content_type, OPENMETRICS.content_type]
    )
    plain, compressed, again = bodies[:3]
    assert gzip.decompress(compressed) == plain
    assert compressed == again
    assert len(set(bodies)) == 8
    assert not rendering._under_way


async def test_who_gives_up_takes_nothing_from_the_others() -> None:
    """One scraper that goes away ends nobody else's scrape."""
    held = Held()
    rendering = Rendering(held, lambda: NOW)
    shown = snapshot(usage(usage=1.0))
    first, second = (
        asyncio.create_task(rendering.body(shown, TEXT, compressed=False))
        for _ in range(2)
    )
    await asyncio.sleep(0)
    first.cancel()
    held.go.set()
    assert b"kafka_quota_produce_bytes_per_second" in await second
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failure_is_told_to_all_and_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next scrape tries again."""
    held = Held()
    held.go.set()
    rendering = Rendering(held, lambda: NOW)
    shown = snapshot()
    with monkeypatch.context() as broken:
        broken.setattr(Held, "render", lambda *_: 1 / 0)
        asked = [rendering.body(shown, TEXT, compressed=c) for c in (False, True)]
        failed = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in failed] == [ZeroDivisionError] * 2
    assert await rendering.body(shown, TEXT, compressed=False)
