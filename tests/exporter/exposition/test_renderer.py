"""Our own renderer beside prometheus_client: the same bytes, after any sequence of snapshots."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.examples import NOW, snapshot, usage
from tests.exporter.exposition.pages import History, page, series
from tests.exporter.recorded import TAKEN_AT
from tests.strategies import examples, texts

from quotascope.exporter.exposition import (
    OPENMETRICS,
    TEXT,
    Renderer,
    TextFormat,
    lines,
)
from quotascope.exporter.exposition.rows import encodable
from quotascope.exporter.snapshot import (
    Columns,
    Entity,
    EntityUsage,
    NodeUsage,
    Snapshot,
)
from quotascope.exporter.snapshot.columns import NAMES
from quotascope.exporter.snapshot.layout import fixed

FORMATS = (TEXT, OPENMETRICS)


def broken(shown: Snapshot) -> Snapshot:
    """One that cannot be written: found out when the lines of entities are done."""
    node: Any = NodeUsage(broker="1", exempt_request_threads="no number")  # type: ignore[arg-type]
    return replace(shown, nodes=(node,))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(
    seed=st.integers(0, 1 << 64),
    cluster=st.sampled_from((None, "prod", 'a"\\\n')) | texts,
)
def test_bytes_are_those_of_the_client_library(seed: int, cluster: str | None) -> None:
    """Whatever was shown, skipped or failed before, both formats are what a new renderer writes, and prometheus_client of the same series."""
    renderer, history = Renderer(cluster), History(seed)
    for step in range(6):
        shown = history.next()
        way = history.pick(("render", "render", "render", "skip", "fail"))
        if way == "skip":
            continue
        if way == "fail":
            with pytest.raises(ValueError, match="could not convert"):
                renderer.render(broken(shown), NOW)
        for text_format in FORMATS:
            expected = page(shown, NOW + step, text_format, cluster)
            assert renderer.render(shown, NOW + step, text_format) == expected


@pytest.mark.parametrize("text_format", FORMATS)
@pytest.mark.parametrize("cluster", [None, "prod"])
def test_recorded_nodes_one_after_the_other(
    text_format: TextFormat, cluster: str | None, request: pytest.FixtureRequest
) -> None:
    """A renderer that saw other clusters writes what a new one would."""
    renderer = Renderer(cluster)
    for name in ("split_throttled", "pair_throttled", "tiered_throttled") * 2:
        shown: Snapshot = request.getfixturevalue(name)
        expected = page(shown, TAKEN_AT, text_format, cluster)
        assert renderer.render(shown, TAKEN_AT, text_format) == expected


def many(step: int, count: int = 300) -> list[EntityUsage]:
    """Entities of which a few are others with each step, and the others the same objects."""
    return [
        EntityUsage(
            entity=one_of_many(f"user-{at}-{step if at % 50 == 0 else 0}"),
            usage=at * step / 7,
        )
        for at in range(count)
    ]


@cache
def one_of_many(user: str) -> Entity:
    """Always the same object."""
    return usage(user=user).entity


@pytest.mark.parametrize("strange", ["zoe", "\ud800"])
def test_only_what_came_is_looked_at(
    strange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are made for entities that came alone, and names compared with their neighbors' only, whatever another client calls itself."""
    renderer = Renderer()
    crowd = [usage(user=f"user-{at:03}", usage=0.5, limit=1.0) for at in range(300)]
    before = snapshot(*crowd, usage(user=strange, usage=0.5))
    renderer.render(before, NOW)
    came = usage(user="user-100a", usage=1.5, limit=2.0).entity
    old = before.shown.layout
    layout = old.changed(np.array([7, 8, 250]), [came])
    columns = {
        name: layout.carry(getattr(before.shown, name), old, 0.25) for name in NAMES
    }
    asked: set[str] = set()

    def noted(text: str) -> str:
        asked.add(text)
        return encodable(text)

    monkeypatch.setattr(lines, "encodable", noted)
    shown = Columns(layout=layout, **columns, causes=np.zeros(len(layout), np.int8))
    after = replace(before, shown=shown)
    written = renderer.render(after, NOW)
    users = {text for text in asked if text.startswith("user-")}
    assert users == {"user-009", came.user, "user-101", "user-251"} | (
        {"user-299"} if strange == "\ud800" else set()
    )
    monkeypatch.undo()
    assert written == page(after, NOW)


def test_equal_entities_in_another_order() -> None:
    """Lines of entities that changed their places are not those of the last text."""
    first, second = usage(usage=1.0), usage(usage=2.0)
    renderer = Renderer()
    for crowd in ((first, second), (second, first), (first, second)):
        shown = snapshot(*crowd, usage(user="bob", usage=3.0))
        assert renderer.render(shown, NOW) == page(shown, NOW)


def test_scrapes_at_the_same_time() -> None:
    """Two scrapers in two formats do not get into each other's way, nor a late one with an old snapshot."""
    renderer = Renderer()
    shown = [snapshot(*many(step)) for step in range(6)]
    asked = [(each, text_format) for each in shown for text_format in FORMATS] * 3
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda each: renderer.render(each[0], NOW, each[1]), asked)
        )
    assert answers == [page(each, NOW, kind) for each, kind in asked]


def test_texts_that_are_still_read_stay_as_they_were() -> None:
    """The memory of a text is used again only when no scrape holds it."""
    renderer = Renderer()
    shown = [snapshot(*many(step)) for step in range(6)]
    texts = [renderer.render(each, NOW) for each in shown]
    texts += [renderer.render(each, NOW, OPENMETRICS) for each in shown]
    assert texts == [
        page(each, NOW, text_format)
        for text_format in (TEXT, OPENMETRICS)
        for each in shown
    ]


def test_memory_of_a_text_that_is_no_longer_read_is_used_again() -> None:
    """Two texts take turns: the third is written where the first was; where only ages change, the last one is written to."""
    renderer = Renderer()
    crowd = snapshot(*many(1, 3000))
    shown = []
    for number in (0.25, 0.75, 0.25):  # of one length, or else memory is moved
        numbers = crowd.shown.usage.copy()
        numbers[0] = number
        columns = replace(crowd.shown, usage=fixed(numbers))
        shown.append(replace(crowd, shown=columns))
    size = len(renderer.render(shown[0], NOW))
    renderer.render(shown[1], NOW)
    for after, seconds, share in ((shown[2], 0, 0.7), (shown[2], 1.5, 0.1)):
        tracemalloc.start()
        try:
            renderer.render(after, NOW + seconds)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < size * share


def test_same_text_again_is_the_same_object() -> None:
    """Nothing is copied where nothing has changed; another format is."""
    renderer = Renderer()
    crowd = snapshot(*many(1))
    text = renderer.render(crowd, NOW)
    assert renderer.render(crowd, NOW) is text
    assert renderer.render(crowd, NOW, OPENMETRICS) != text
    assert renderer.render(crowd, NOW) == text


def test_lines_are_kept_nowhere_but_in_the_text() -> None:
    """What stays in memory is the last text, the one that the next is written over, and a few bytes for each line."""
    crowd = snapshot(*many(1, 3000))
    Renderer().render(crowd, NOW)  # what a layout derives is not the renderer's
    tracemalloc.start()
    try:
        renderer = Renderer()
        sizes = [len(renderer.render(crowd, NOW)) for _ in range(3)]
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 2.5 * sizes[-1]


@pytest.mark.parametrize("both_at_first", [True, False])
def test_names_that_look_alike_in_utf8_are_one_series(both_at_first: bool) -> None:  # noqa: FBT001 - a case
    """Half of a surrogate pair is spelled out, which is what another name may be; the first of them is shown."""
    half, spelled = usage(user="\ud800", usage=1.0), usage(user="\\ud800", usage=2.0)
    others = [usage(user=f"user-{at}", usage=0.5) for at in range(3)]
    renderer = Renderer()
    for each in ((half, spelled) if both_at_first else (spelled,), (half, spelled)):
        shown = snapshot(*others, *each)
        text = renderer.render(shown, NOW)
        assert text == page(shown, NOW)
        labels = ("broker", "1"), ("client_id", ""), ("user", "\\ud800")
        found = series(text)["kafka_quota_produce_bytes_per_second", labels]
        assert found == spelled.usage


def test_failure_leaves_nothing_behind() -> None:
    """A scrape that failed half way does not spoil the next one."""
    renderer = Renderer()
    renderer.render(snapshot(*many(1)), NOW)
    with pytest.raises(ValueError, match="could not convert"):
        renderer.render(broken(snapshot(*many(2))), NOW)
    shown = snapshot(*many(3))
    assert renderer.render(shown, NOW) == page(shown, NOW)


def test_what_is_gone_is_forgotten() -> None:
    """Clients that come and go leave no memory behind."""
    tracemalloc.start()
    try:
        renderer = Renderer()
        sizes = []
        for step in range(12):
            renderer.render(snapshot(*others(step)), NOW)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(sizes[6:]) < 1.2 * max(sizes[:6])


def others(step: int) -> list[EntityUsage]:
    """Entities that nobody saw before."""
    return [usage(user=f"user-{step}-{at}", usage=1.5) for at in range(200)]
