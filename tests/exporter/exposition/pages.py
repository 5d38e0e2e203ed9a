"""Pages of the exporter as prometheus_client reads and writes them, and random snapshots to fill them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics.exposition import (
    generate_latest as generate_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from tests.exporter.examples import limits, snapshot
from tests.strategies import HOSTILE

from quotascope.exporter.exposition import OPENMETRICS, TEXT, Renderer, TextFormat
from quotascope.exporter.snapshot import (
    CAUSES,
    Callbacks,
    Columns,
    Entity,
    Floats,
    Layout,
    NodeUsage,
    Peaks,
    Snapshot,
)
from quotascope.exporter.snapshot.columns import NAMES
from quotascope.exporter.snapshot.layout import fixed, order
from quotascope.metrics import DEFAULT, Level, QuotaEntity, QuotaType, Resolution

Key = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels of a series."""


class _Read(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


def page(
    shown: Snapshot,
    now: float,
    text_format: TextFormat = TEXT,
    cluster: str | None = None,
) -> bytes:
    """What a renderer that has seen nothing else writes, which is what prometheus_client writes of the same series."""
    renderer = Renderer(cluster)
    read = text_string_to_metric_families(renderer.render(shown, now).decode())
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Read(read))
    openmetrics = text_format is OPENMETRICS
    expected = (generate_openmetrics if openmetrics else generate_latest)(registry)
    text = renderer.render(shown, now, text_format)
    assert text == expected
    return text


def lines(shown: Snapshot, beginning: str) -> list[str]:
    """The series whose names begin so, as text."""
    text = page(shown, shown.taken_at).decode()
    return [line for line in text.splitlines() if line.startswith(beginning)]


def series(text: bytes) -> dict[Key, float]:
    """What Prometheus reads in a page; an assertion that there is no series twice."""
    found: dict[Key, float] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


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
        self._own += [
            replace(each, serial=-1 - at) for at, each in enumerate(self._own[:2])
        ]
        self._tagged = {
            count: [self._entity(count) for _ in range(4)] for count in (1, 2)
        }
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
            remade = {id(each) for each in self._some(last.entities)}
            return Layout(
                [
                    replace(each, limit=limit, resolution=rule)
                    if id(each) in remade and each.tags is None
                    else each
                    for each in last.entities
                ]
            )
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
        """One more of them."""
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
        node = NodeUsage(
            broker="2", throttling_errors={self._name(): 1.0}, delay_queue_size=queue
        )
        return snapshot(
            shown=shown,
            nodes=pick(((), (other, node), (node,))),
            limits=pick((None, limits(), limits(rules={}))),
            peaks=pick((None, maxima)),
            callbacks=Callbacks(labels=labels),
        )
