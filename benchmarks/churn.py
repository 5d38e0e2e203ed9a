"""
A million client ids, one after the other, through the whole exporter: what of them stays in memory.

Tables as a source reads them, the join, the cap, the maxima of sampling, the page, and a push over OTLP but for the
sending; a simulated minute has four scrapes, each with a sample before it. Each scrape sees so many clients, of which a
part is new and the longest known are gone. Run it with ``python -m benchmarks churn``; with ``--tenants`` the ids are a
tag of a custom quota callback.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from math import nan
from random import Random

import numpy as np
from benchmarks.output import say
from benchmarks.process import resident_mib
from opentelemetry.sdk.resources import Resource

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection.sampling import WINDOW_SECONDS, PeakKeeper
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.join.join import Join
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import Bean, BeanColumn, BeanTable
from quotascope.exporter.otlp.encoding import Encoder, unix_ns
from quotascope.exporter.otlp.push import Starts
from quotascope.exporter.snapshot import LimitsHealth, Snapshot, SourceHealth, SourceRead
from quotascope.exporter.sources.source import LayoutTracker
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

Key = tuple[str, str, str]
"""Client id, MBean type, attribute."""
ColumnOf = Callable[[Key], BeanColumn]

SCRAPE_SECONDS = 15.0
PUSH_BYTES = 4 * 2**20
ATTRIBUTES = (
    ("Produce", "byte-rate"),
    ("Produce", "throttle-time"),
    ("ControllerMutation", "tokens"),
)
CONFIG = CardinalityConfig(
    max_entities=2_000, exclude_client_ids=("console-.*",), detail_above=0.5, idle_after_seconds=60.0
)


class Broker:
    """A broker that has seen many clients."""

    def __init__(self, node_id: str, live: int, column: ColumnOf) -> None:
        self._node_id = node_id
        self._ids: deque[str] = deque(maxlen=live)
        self._columns: LayoutTracker[Key] = LayoutTracker(lambda key: [column(key)])
        self._random = Random(node_id)  # noqa: S311 - made-up numbers

    def read(self, new: list[str]) -> SourceRead:
        """Return the answer of its agent after these clients came."""
        self._ids.extend(new)
        keys = [(name, *attribute) for name in self._ids for attribute in ATTRIBUTES]
        layout, values = self._columns.place(keys, array("d", self._numbers()))
        return SourceRead(
            health=SourceHealth(name=self._node_id, dialect="made up", up=True, duration_seconds=0.1),
            table=BeanTable(node_id=self._node_id, layout=layout, values=values),
        )

    def _numbers(self) -> Iterator[float]:
        draw = self._random.random
        for _ in self._ids:
            busy = draw()
            throttled = busy > 0.95  # noqa: PLR2004 - one in twenty
            yield busy * 1_000 if busy > 0.5 else 0.0  # noqa: PLR2004 - half of them rest
            yield 100 * busy if throttled else nan
            yield 20 - 21 * busy


class Exporter:
    """All parts between a table and the page, without a network."""

    def __init__(self) -> None:
        self._join = Join()
        self._cardinality = Cardinality(CONFIG)
        self._peaks = PeakKeeper(WINDOW_SECONDS)
        self._renderer = Renderer()
        self._encoder = Encoder(Resource({}), None, PUSH_BYTES, Starts(began_ns=0))
        self._limits = _limits()

    def sample(self, reads: list[SourceRead], moment: float) -> Snapshot:
        """Return the snapshot at this time."""
        joined = self._join.snapshot(reads, self._limits, LimitsHealth(), moment)
        snapshot = self._cardinality.apply(joined)
        return replace(snapshot, peaks=self._peaks.update(snapshot, moment))

    def scrape(self, reads: list[SourceRead], moment: float) -> tuple[Snapshot, int]:
        """Return the snapshot at this time, and the bytes of its page."""
        snapshot = self.sample(reads, moment)
        self._push(snapshot, moment)
        return snapshot, len(self._renderer.render(snapshot, moment))

    def _push(self, snapshot: Snapshot, moment: float) -> None:
        points = self._encoder.points(snapshot, moment)
        for request in self._encoder.requests(points, unix_ns(moment)):
            request.message.SerializeToString()


def _column(key: Key) -> BeanColumn:
    name, kind, attribute = key
    tags = {"type": kind, "client-id": name}
    if kind == "Produce":
        tags["user"] = f"user-{len(name) % 7}"
    return BeanColumn(Bean.of("kafka.server", tags), attribute)


def _tenant(key: Key) -> BeanColumn:
    name, kind, attribute = key
    return BeanColumn(Bean.of("kafka.server", {"type": kind, "tenant": name}), attribute)


def _limits() -> Limits:
    default_rules = QuotaRules({QuotaEntity(DEFAULT, DEFAULT): 1_000.0})
    client = QuotaRules({QuotaEntity(None, DEFAULT): 20.0})
    return Limits(
        rules={
            QuotaType.PRODUCE: default_rules,
            QuotaType.CONTROLLER_MUTATION: client,
        },
        nodes={"1": NodeSettings()},
        active_controller="1",
        read_at=0.0,
    )


def _names() -> Iterator[str]:
    number = 0
    while True:
        kind = "console" if number % 10 == 0 else "app"
        yield f"{kind}-{number:08d}-{number * 2_654_435_761 % 2**32:08x}"
        number += 1


def run(total: int, live: int, new: int, column: ColumnOf) -> Iterator[tuple[int, float, int, Snapshot, int]]:
    """Ids so far, resident MiB, blocks of Python's allocator, snapshot and bytes of the page, ten times."""
    broker, exporter, names = Broker("1", live, column), Exporter(), _names()
    scrapes = total // new
    for number in range(1, scrapes + 1):
        moment = number * SCRAPE_SECONDS
        reads = [broker.read(list(islice(names, new // 2)))]
        exporter.sample(reads, moment - SCRAPE_SECONDS / 2)
        reads = [broker.read(list(islice(names, new - new // 2)))]
        snapshot, size = exporter.scrape(reads, moment)
        if number * 10 // scrapes != (number - 1) * 10 // scrapes:
            del reads
            gc.collect()
            yield number * new, resident_mib(os.getpid()), sys.getallocatedblocks(), snapshot, size


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--ids", type=int, default=1_000_000)
    parser.add_argument("--live", type=int, default=10_000, help="ids at one time")
    parser.add_argument("--new", type=int, default=5_000, help="new ids per scrape")
    parser.add_argument("--tenants", action="store_true", help="ids are tenants")


def main(options: argparse.Namespace) -> int:
    """Print how memory goes."""
    column = _tenant if options.tenants else _column
    say(f"{resident_mib(os.getpid()):.0f} MiB before the first scrape")
    started = time.perf_counter()
    for ids, mib, blocks, snapshot, size in run(options.ids, options.live, options.new, column):
        folds, callbacks = snapshot.folds, snapshot.callbacks
        peaks = 0
        if snapshot.peaks is not None:
            peaks = np.isfinite(snapshot.peaks.utilization).sum()
        say(
            f"{ids:>9,} ids: {mib:6.1f} MiB, {blocks:>9,} blocks; "
            f"{len(snapshot.measured):,} measured, {len(snapshot.entities):,} shown, {folds.overflow:,} folded, "
            f"{folds.excluded:,} excluded, {folds.idle:,} idle, {peaks:,} maxima; "
            f"{len(snapshot.columns.tagged):,} of callbacks, {callbacks.folded:,} folded; page {size:,} bytes"
        )
    elapsed = time.perf_counter() - started
    say(f"{elapsed:.0f} s for {options.ids // options.new} scrapes")
    return 0
