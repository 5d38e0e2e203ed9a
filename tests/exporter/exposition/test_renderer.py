"""Our own renderer beside prometheus_client: the same bytes, after any sequence of snapshots."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.examples import NOW, limits, snapshot, usage
from tests.exporter.exposition.oracle import page
from tests.strategies import HOSTILE, examples, texts

from quotascope.exporter.exposition import OPENMETRICS, TEXT, Renderer, lines
from quotascope.exporter.exposition.rows import encodable
from quotascope.exporter.snapshot import (
    CAUSES,
    Callbacks,
    Columns,
    Entity,
    EntityUsage,
    Floats,
    Layout,
    NodeUsage,
    Peaks,
    Snapshot,
)
from quotascope.exporter.snapshot.columns import NAMES
from quotascope.exporter.snapshot.layout import fixed, order
from quotascope.metrics import DEFAULT, Level, QuotaEntity, QuotaType, Resolution

FORMATS = (TEXT, OPENMETRICS)

NAMES_OF_CLIENTS = ("", "a", "b", "\ud800", "\\ud800", "%s", "\udfff\u00e9", *HOSTILE)
NUMBERS = (
    0.0, -0.0, 1.0, 7.0, 0.1 + 0.2, 1e6, 999_999.5, 1234567.5, 1e-5, 1e-4, 3e-7, -1e7, 2.5e9, 1e16, 5e-324, math.inf, -math.inf,
)  # fmt: skip
LABELS = (("tenant",), ("tier",), ("tenant", "tier"), ())
"""What a custom quota callback calls its tags, from snapshot to snapshot."""


class History:
    """
    Random snapshots one after the other: entities come, go, stay, and change their numbers, rules and limits; with and without detail, maxima and callbacks.

    From a seed rather than drawn one by one, which would take Hypothesis a hundred times as long as the test.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secrets here
        self.pick = self._random.choice
        self._own = [self._entity(0) for _ in range(self._random.randint(1, 8))]
        self._own += [replace(each, serial=-1 - at) for at, each in enumerate(self._own[:2])]
        self._tagged = {count: [self._entity(count) for _ in range(4)] for count in (1, 2)}
        self._layouts: dict[int, Layout] = {}
        self._shown: list[Columns] = []

    def _entity(self, tags: int) -> Entity:
        pick = self.pick
        return Entity(
            broker=pick(("1", "2", "10", "x")),
            quota_type=pick(tuple(QuotaType)),
            user="" if tags else self._name(),
            client_id="" if tags else self._name(),
            resolution=None if tags else self._rule(),
            limit=None if tags else self._number(),
            burst_tokens=None if tags else self._number(),
            tags=tuple(self._name() for _ in range(tags)) if tags else None,
            stands_in=pick((True, False)),
        )

    def _name(self) -> str:
        some = self._random.random() < 0.5  # so that many are equal, or nearly
        return self.pick(NAMES_OF_CLIENTS[:6] if some else NAMES_OF_CLIENTS)

    def _number(self) -> float | None:
        return self.pick((None, self._random.random(), *NUMBERS))

    def _rule(self) -> Resolution | None:
        pick = self.pick
        entity = pick((None, QuotaEntity(DEFAULT), QuotaEntity(self._name())))
        return pick((None, Resolution(level=Level.USER, entity=entity, bound=None)))

    def _some(self, items: Iterable[Any]) -> list[Any]:
        share = self.pick((0.2, 0.5, 0.9))
        return [each for each in items if self._random.random() < share]

    def _layout(self, tags: int) -> Layout:
        """The same one again, one that came of it, or one put together from scratch."""
        pool = self._own + self._tagged.get(tags, [])
        last = self._layouts.get(tags)
        way = self.pick(("same", "changed", "remade", "scratch"))
        if last is None or way == "scratch":
            return Layout(sorted(self._some(pool), key=order))
        if way == "changed":
            gone = np.array(self._some(range(len(last))), np.intp)
            return last.changed(gone, self._some(pool)[:3])
        if way == "remade":  # other rules: other objects, of the same entities
            limit, rule = self._number(), self._rule()
            remade = {id(each) for each in self._some(last.entities) if each.tags is None}
            changed = ((each, replace(each, limit=limit, resolution=rule)) for each in last.entities)
            return Layout([other if id(each) in remade else each for each, other in changed])
        return last

    def _column(self, layout: Layout, name: str | None = None) -> Floats:
        """Some numbers as they once were, others as they never were, or none at all."""
        if self._random.random() < 0.2:
            return layout.absent
        values = np.full(len(layout), np.nan)
        if name is not None and self._shown:
            once = self.pick(self._shown[-2:])
            values = layout.carry(getattr(once, name), once.layout).copy()
        for row in self._some(range(len(layout))):
            number = self._number()
            values[row] = np.nan if number is None else number
        return fixed(values)

    def next(self) -> Snapshot:
        pick = self.pick
        labels = pick(LABELS)
        layout = self._layouts[len(labels)] = self._layout(len(labels))
        size = len(layout)
        causes = [self._random.randrange(len(CAUSES)) for _ in range(size)]
        detail = np.array([pick((True, False)) for _ in range(size)], np.bool_)
        shown = Columns(
            layout=layout,
            **{name: self._column(layout, name) for name in NAMES},
            causes=np.array(causes, np.int8),
            detailed=pick((None, detail)),
        )
        self._shown.append(shown)
        queue = {QuotaType.FETCH: self._number() or 0.0}
        maxima = Peaks(
            utilization=self._column(layout),
            burst_used=self._column(layout),
            delay_queue_size={("2", QuotaType.FETCH): 3.0},
        )
        other = NodeUsage(broker="10", stale_entities={QuotaType.FETCH: 1})
        node = NodeUsage(broker="2", throttling_errors={self._name(): 1.0}, delay_queue_size=queue)
        return snapshot(
            shown=shown,
            nodes=pick(((), (other, node), (node,))),
            limits=pick((None, limits(), limits(rules={}))),
            peaks=pick((None, maxima)),
            callbacks=Callbacks(labels=labels),
        )


def broken(shown: Snapshot) -> Snapshot:
    """One that cannot be written: found out when the lines of entities are done."""
    node: Any = NodeUsage(broker="1", exempt_request_threads="no number")  # type: ignore[arg-type]
    return replace(shown, nodes=(node,))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(seed=st.integers(0, 1 << 64), cluster=st.sampled_from((None, "prod", 'a"\\\n')) | texts)
def test_bytes_are_those_of_the_client_library(seed: int, cluster: str | None) -> None:
    """Whatever was shown, skipped or failed before, both formats are equal to what prometheus_client writes of the snapshot's own series."""
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


def many(step: int, count: int = 300) -> list[EntityUsage]:
    """Entities of which a few are others with each step, and the others the same objects."""
    return [
        EntityUsage(entity=one_of_many(f"user-{at}-{step if at % 50 == 0 else 0}"), usage=at * step / 7)
        for at in range(count)
    ]


@cache
def one_of_many(user: str) -> Entity:
    return usage(user=user).entity


@pytest.mark.parametrize("strange", ["zoe", "\ud800"])
def test_only_what_came_is_looked_at(strange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are made for entities that came alone, and names compared with their neighbors' only, whatever another client calls itself."""
    renderer = Renderer()
    crowd = [usage(user=f"user-{at:03}", usage=0.5, limit=1.0) for at in range(300)]
    before = snapshot(*crowd, usage(user=strange, usage=0.5))
    renderer.render(before, NOW)
    came = usage(user="user-100a", usage=1.5, limit=2.0).entity
    old = before.shown.layout
    layout = old.changed(np.array([7, 8, 250]), [came])
    columns = {name: layout.carry(getattr(before.shown, name), old, 0.25) for name in NAMES}
    asked: set[str] = set()

    def noted(text: str) -> str:
        asked.add(text)
        return encodable(text)

    monkeypatch.setattr(lines, "encodable", noted)
    shown = Columns(layout=layout, **columns, causes=np.zeros(len(layout), np.int8))
    after = replace(before, shown=shown)
    written = renderer.render(after, NOW)
    users = {text for text in asked if text.startswith("user-")}
    assert users == {"user-009", came.user, "user-101", "user-251"} | ({"user-299"} if strange == "\ud800" else set())
    monkeypatch.undo()
    assert written == page(after, NOW)


def test_scrapes_at_the_same_time() -> None:
    """
    Two scrapers in two formats do not get into each other's way, nor a late one with an old snapshot.

    The memory of a text is used again only when no scrape holds it.
    """
    renderer = Renderer()
    shown = [snapshot(*many(step)) for step in range(6)]
    asked = [(each, text_format) for each in shown for text_format in FORMATS]
    expected = [page(each, NOW, text_format) for each, text_format in asked]
    texts = [renderer.render(each, NOW, text_format) for each, text_format in asked]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda each: renderer.render(each[0], NOW, each[1]), asked * 3))
    assert answers == expected * 3
    assert texts == expected


def traced(texts: Iterable[bytes]) -> list[tuple[int, int, int]]:
    """The length of each text, the bytes in memory after it was made, and the most there were until then."""
    tracemalloc.start()
    try:
        return [(len(text), *tracemalloc.get_traced_memory()) for text in texts]
    finally:
        tracemalloc.stop()


def test_memory_of_a_text_that_is_no_longer_read_is_used_again() -> None:
    """Two texts take turns: the third is written where the first was; where only ages change, the last one is written to."""
    renderer = Renderer()
    crowd = snapshot(*many(1, 3000))
    shown = []
    for number in (0.25, 0.75, 0.25):  # of one length, or else memory is moved
        numbers = crowd.shown.usage.copy()
        numbers[0] = number
        shown.append(replace(crowd, shown=replace(crowd.shown, usage=fixed(numbers))))
    for before in shown[:2]:
        renderer.render(before, NOW)
    for seconds, share in ((0, 0.7), (1.5, 0.1)):
        ((size, _, most),) = traced(renderer.render(shown[2], NOW + seconds) for _ in "1")
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
    *_, (size, kept, _) = traced(map(Renderer().render, [crowd] * 3, [NOW] * 3))
    assert kept < 2.5 * size


def test_what_is_gone_is_forgotten() -> None:
    """Clients that come and go leave no memory behind."""
    renderer = Renderer()
    other_names = (snapshot(*others(step)) for step in range(12))
    sizes = [kept for _, kept, _ in traced(renderer.render(each, NOW) for each in other_names)]
    assert max(sizes[6:]) < 1.2 * max(sizes[:6])


def others(step: int) -> list[EntityUsage]:
    return [usage(user=f"user-{step}-{at}", usage=1.5) for at in range(200)]
