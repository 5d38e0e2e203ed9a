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
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import DEFAULT, Level, QuotaEntity, QuotaType, Resolution

FORMATS = (TEXT, OPENMETRICS)

NAMES_OF_CLIENTS = ("", "a", "b", "\ud800", "\\ud800", "%s", "\udfff\u00e9", *HOSTILE)
NUMBERS = (
    0.0, -0.0, 1.0, 7.0, 0.1 + 0.2, 1e6, 999_999.5, 1234567.5, 1e-5, 1e-4, 3e-7, -1e7, 2.5e9, 1e16, 5e-324, math.inf,
    -math.inf,
)  # fmt: skip
LABELS = (("tenant",), ("tier",), ("tenant", "tier"), ())
"""What a custom quota callback calls its tags, from snapshot to snapshot."""


class History:
    """
    Random snapshots one after the other.

    Entities come, go, stay, and change their numbers, rules and limits; with and without detail, maxima and callbacks.
    From a seed rather than drawn one by one, which would take Hypothesis a hundred times as long as the test.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secrets here
        self.pick = self._random.choice
        self._own = [self._entity(0) for _ in range(self._random.randint(1, 8))]
        self._own += [replace(entity, serial=-1 - number) for number, entity in enumerate(self._own[:2])]
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
        return [item for item in items if self._random.random() < share]

    def _layout(self, tags: int) -> Layout:
        """Return the same layout, one derived from it, or one from scratch."""
        pool = self._own + self._tagged.get(tags, [])
        old_layout = self._layouts.get(tags)
        way = self.pick(("same", "changed", "remade", "scratch"))
        if old_layout is None or way == "scratch":
            return Layout(sorted(self._some(pool), key=order))
        if way == "changed":
            removed = np.array(self._some(range(len(old_layout))), np.intp)
            return old_layout.changed(removed, self._some(pool)[:3])
        if way == "remade":  # other rules: other objects, of the same entities
            limit, rule = self._number(), self._rule()
            remade = {id(entity) for entity in self._some(old_layout.entities) if entity.tags is None}
            changed = ((entity, replace(entity, limit=limit, resolution=rule)) for entity in old_layout.entities)
            return Layout([limited if id(entity) in remade else entity for entity, limited in changed])
        return old_layout

    def _column(self, layout: Layout, name: str | None = None) -> Floats:
        """Draw numbers of a column: those of an earlier snapshot, new ones, or none."""
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
        columns: dict[str, Any] = {name: self._column(layout, name) for name in NAMES}
        columns_of_state = Columns(
            layout=layout,
            **columns,
            causes=np.array(causes, np.int8),
            detailed=pick((None, detail)),
        )
        self._shown.append(columns_of_state)
        queue = {QuotaType.FETCH: self._number() or 0.0}
        maxima = Peaks(
            utilization=self._column(layout),
            burst_used=self._column(layout),
            delay_queue_size={("2", QuotaType.FETCH): 3.0},
        )
        stale_node = NodeUsage(broker="10", stale_entities={QuotaType.FETCH: 1})
        node = NodeUsage(
            broker="2", numbers={catalog.THROTTLING_ERRORS: {(self._name(),): 1.0}}, delay_queue_size=queue
        )
        return snapshot(
            columns=columns_of_state,
            nodes=pick(((), (stale_node, node), (node,))),
            limits=pick((None, limits(), limits(rules={}))),
            peaks=pick((None, maxima)),
            callbacks=Callbacks(labels=labels),
        )


def broken(state: Snapshot) -> Snapshot:
    """Return the snapshot with a node's number that cannot be rendered, which fails after the lines of entities."""
    number: Any = "no number"
    node = NodeUsage(broker="1", numbers={catalog.EXEMPT_REQUEST_THREADS: {(): number}})
    return replace(state, nodes=(node,))


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 1 << 64), cluster=st.sampled_from((None, "prod", 'a"\\\n')) | texts)
def test_bytes_are_those_of_the_client_library(seed: int, cluster: str | None) -> None:
    """Both formats equal the text of prometheus_client, whatever was shown, skipped or failed before."""
    renderer, history = Renderer(cluster), History(seed)
    for step in range(6):
        state = history.next()
        way = history.pick(("render", "render", "render", "skip", "fail"))
        if way == "skip":
            continue
        if way == "fail":
            with pytest.raises(ValueError, match="could not convert"):
                renderer.render(broken(state), NOW)
        for text_format in FORMATS:
            expected = page(state, NOW + step, text_format, cluster)
            assert renderer.render(state, NOW + step, text_format) == expected


def many(step: int, count: int = 300) -> list[EntityUsage]:
    """Return many entities, of which a few change with each step, and the others are the same objects."""
    return [
        EntityUsage(entity=one_of_many(f"user-{number}-{step if number % 50 == 0 else 0}"), usage=number * step / 7)
        for number in range(count)
    ]


@cache
def one_of_many(user: str) -> Entity:
    return usage(user=user).entity


@pytest.mark.parametrize("strange", ["zoe", "\ud800"])
def test_only_what_came_is_looked_at(strange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The renderer builds lines of new entities only, and compares their names with their neighbors' alone."""
    renderer = Renderer()
    crowd = [usage(user=f"user-{number:03}", usage=0.5, limit=1.0) for number in range(300)]
    old_state = snapshot(*crowd, usage(user=strange, usage=0.5))
    renderer.render(old_state, NOW)
    added = usage(user="user-100a", usage=1.5, limit=2.0).entity
    old = old_state.columns.layout
    layout = old.changed(np.array([7, 8, 250]), [added])
    columns: dict[str, Any] = {name: layout.carry(getattr(old_state.columns, name), old, 0.25) for name in NAMES}
    looked_up: set[str] = set()

    def noted(text: str) -> str:
        looked_up.add(text)
        return encodable(text)

    monkeypatch.setattr(lines, "encodable", noted)
    new_columns = Columns(layout=layout, **columns, causes=np.zeros(len(layout), np.int8))
    new_state = replace(old_state, columns=new_columns)
    written = renderer.render(new_state, NOW)
    users = {text for text in looked_up if text.startswith("user-")}
    assert users == {"user-009", added.user, "user-101", "user-251"} | ({"user-299"} if strange == "\ud800" else set())
    monkeypatch.undo()
    assert written == page(new_state, NOW)


def test_scrapes_at_the_same_time() -> None:
    """
    Scrapes in two formats, or of an old snapshot, do not disturb each other.

    The memory of a text is used again only when no scrape holds it.
    """
    renderer = Renderer()
    states = [snapshot(*many(step)) for step in range(6)]
    requests = [(state, text_format) for state in states for text_format in FORMATS]
    expected = [page(state, NOW, text_format) for state, text_format in requests]
    texts = [renderer.render(state, NOW, text_format) for state, text_format in requests]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda request: renderer.render(request[0], NOW, request[1]), requests * 3))
    assert answers == expected * 3
    assert texts == expected


def traced(texts: Iterable[bytes]) -> list[tuple[int, int, int]]:
    """Return each text's length, the memory after it was rendered, and the peak until then."""
    tracemalloc.start()
    try:
        return [(len(text), *tracemalloc.get_traced_memory()) for text in texts]
    finally:
        tracemalloc.stop()


def test_memory_of_a_text_that_is_no_longer_read_is_used_again() -> None:
    """The third text is written into the first one's memory; where only ages change, the last one is written again."""
    renderer = Renderer()
    crowd = snapshot(*many(1, 3000))
    states = []
    for number in (0.25, 0.75, 0.25):  # of one length, or else memory is moved
        numbers = crowd.columns.usage.copy()
        numbers[0] = number
        states.append(replace(crowd, columns=replace(crowd.columns, usage=fixed(numbers))))
    for state in states[:2]:
        renderer.render(state, NOW)
    for seconds, share in ((0, 0.7), (1.5, 0.1)):
        ((size, _, peak),) = traced(renderer.render(states[2], NOW + seconds) for _ in "1")
        assert peak < size * share


def test_same_text_again_is_the_same_object() -> None:
    """An unchanged text is the same object, until another format was rendered."""
    renderer = Renderer()
    crowd = snapshot(*many(1))
    text = renderer.render(crowd, NOW)
    assert renderer.render(crowd, NOW) is text
    assert renderer.render(crowd, NOW, OPENMETRICS) != text
    assert renderer.render(crowd, NOW) == text


def test_lines_are_kept_nowhere_but_in_the_text() -> None:
    """Memory holds two texts and a few bytes for each line."""
    crowd = snapshot(*many(1, 3000))
    Renderer().render(crowd, NOW)  # what a layout derives is not the renderer's
    *_, (size, kept_bytes, _) = traced(map(Renderer().render, [crowd] * 3, [NOW] * 3))
    assert kept_bytes < 2.5 * size


def test_what_is_gone_is_forgotten() -> None:
    """Clients that come and go leave no memory behind."""
    renderer = Renderer()
    other_names = (snapshot(*others(step)) for step in range(12))
    sizes = [kept_bytes for _, kept_bytes, _ in traced(renderer.render(state, NOW) for state in other_names)]
    assert max(sizes[6:]) < 1.2 * max(sizes[:6])


def others(step: int) -> list[EntityUsage]:
    return [usage(user=f"user-{step}-{number}", usage=1.5) for number in range(200)]
