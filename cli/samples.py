"""Reads samples of a Prometheus server for a table, and opens the past that such a table has."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from . import outputs
from .opened import OpenPast, with_limits
from .too_large import is_too_large

if TYPE_CHECKING:
    from quotascope.exporter.config import PrometheusConfig
    from quotascope.exporter.sources.prometheus_api import Labels, QueryAnswer, Series
    from quotascope.exporter.sources.prometheus_history import Inventory
    from quotascope.pipeline.prometheus.recorded import TableStore
    from quotascope.pipeline.prometheus.remote_read import RawSeries
    from quotascope.pipeline.prometheus.slices import Slice, Wanted

_PAUSES_S: Final = (1.0, 4.0, 16.0)
"""Seconds before each further attempt to read a slice from a server that does not answer."""
_SHORTEST_MS: Final = 60_000
"""Length in ms below which a slice is not divided."""
_NAME: Final = "__name__"


@dataclass(frozen=True, slots=True)
class Remote:
    """Reads slices by remote read. It is sent to Spark's workers with its login, which its text does not show."""

    config: PrometheusConfig = field(repr=False)
    """The server, with secrets instead of the files that have them."""

    def __call__(self, one: Slice) -> Iterator[RawSeries]:
        """Yield the samples of a slice, which is divided if it is too large. Raises `QueryRefused`."""
        from quotascope.exporter.discovery.build import api_of
        from quotascope.exporter.errors import ConfigError, SourceError
        from quotascope.pipeline.prometheus.past import QueryRefused
        from quotascope.pipeline.prometheus.remote_read import HEADERS, request_of, series_of

        try:
            api, _, _ = api_of(self.config)
        except ConfigError as error:
            raise QueryRefused(
                f"{error}. The machine that reads samples, a worker of Spark too, needs the files of TLS at these paths"
            ) from None
        with asyncio.Runner() as runner:
            # periods to be read, the earliest last
            waiting, pauses = [(one.begin_ms, one.end_ms)], [*_PAUSES_S]
            while waiting:
                begin_ms, end_ms = waiting.pop()
                # a sample at the begin belongs to the period before
                try:
                    answer = runner.run(api.read(request_of(one.queries, begin_ms + 1, end_ms), HEADERS))
                except SourceError as error:
                    if is_too_large(error) and end_ms - begin_ms > _SHORTEST_MS:
                        middle_ms = (begin_ms + end_ms) // 2
                        waiting += [(middle_ms, end_ms), (begin_ms, middle_ms)]
                    elif _may_pass(error) and pauses:
                        time.sleep(pauses.pop(0))
                        waiting.append((begin_ms, end_ms))
                    else:
                        raise QueryRefused(f"{self.config.label}: {error}") from None
                else:
                    yield from series_of(answer)


def _may_pass(error: Exception) -> bool:
    """Return whether a server may answer when it is asked again."""
    from quotascope.exporter.errors import SourceUnreachable

    return isinstance(error, SourceUnreachable) or str(error).startswith(("HTTP 429", "HTTP 5"))


def wanted_of(stock: Inventory) -> list[Wanted]:
    """
    Return the series of an inventory to record.

    All are recorded with their labels; series of clients, scrapes and limits are recorded with their samples, too.
    """
    from quotascope.exporter.sources.prometheus_limits import OWN_LIMIT, OWN_RULE
    from quotascope.pipeline.prometheus.samples import series_id
    from quotascope.pipeline.prometheus.slices import Wanted

    entities = {series_id({**one.labels, _NAME: one.name}): one.user or one.client_id for one in stock.series}
    names = {*stock.beat.names, *OWN_LIMIT, OWN_RULE}
    wanted = []
    for one in stock.listed:
        number = series_id(one.labels)
        has_samples = number in entities or one.labels[_NAME] in names
        wanted.append(Wanted(one.labels, entities.get(number, ""), has_samples))
    return wanted


def settings_of(config: PrometheusConfig) -> dict[str, str]:
    """Return the parts of a server's configuration that a table of its samples needs, as texts by name."""
    return {
        "instance_label": config.instance_label,
        "replica_labels": json.dumps(config.replica_labels),
        "dialect": str(config.dialect),
        "nodes": json.dumps({instance: str(node) for instance, node in config.nodes.items()}),
    }


class Listed:
    """
    Lists the series of a table as a server lists its series.

    Args:
        series: The labels of the series.
        store: The samples; None if only the series are needed.

    """

    def __init__(self, series: Iterable[Labels], store: TableStore | None = None) -> None:
        from quotascope.exporter.sources.prometheus_history import OWN_NAMES
        from quotascope.exporter.sources.prometheus_nodes import wanted_names

        labels = list(series)
        names = {*wanted_names({one[_NAME] for one in labels}), *OWN_NAMES}
        self._series = [one for one in labels if one[_NAME] in names]
        self._store = store

    async def names(self, _selector: str, _start: float, _end: float) -> list[str]:
        """Return the names of all metrics."""
        return sorted({one[_NAME] for one in self._series})

    async def series(self, _selector: str, _start: float, _end: float) -> list[Series]:
        """Return all series of interest, without samples."""
        from quotascope.exporter.sources.prometheus_api import Series

        return [Series(labels=one, samples=()) for one in self._series]

    async def query(self, _promql: str, at: float | None = None) -> QueryAnswer:
        """Return the values of limits and rules at a Unix time."""
        from quotascope.exporter.sources.prometheus_api import QueryAnswer, Series
        from quotascope.exporter.sources.prometheus_limits import OWN_LIMIT, OWN_RULE

        latest = [] if self._store is None or at is None else self._store.latest((*OWN_LIMIT, OWN_RULE), at)
        return QueryAnswer(series=[Series(labels=one, samples=[(at or 0.0, repr(value))]) for one, value in latest])


def inventory_of(
    listed: Listed, settings: Mapping[str, str], selector: str, period: tuple[float, float], *, by_exporter: bool | None
) -> Inventory:
    """
    Return the inventory of the series of a table. Raises `QueryRefused`.

    Args:
        listed: The series.
        settings: The settings of the server, as `settings_of` returns them.
        selector: The selector of the series.
        period: Begin and end, Unix time in seconds.
        by_exporter: Whether to read series of an exporter instead of agents; None if there are any.

    """
    from quotascope.exporter.errors import SourceError
    from quotascope.exporter.sources.dialects import BY_NAME
    from quotascope.exporter.sources.prometheus_history import inventory
    from quotascope.exporter.sources.prometheus_nodes import Grouping
    from quotascope.pipeline.prometheus.past import QueryRefused

    grouping = Grouping(
        instance_label=settings["instance_label"], replica_labels=tuple(json.loads(settings["replica_labels"]))
    )
    try:
        return asyncio.run(
            inventory(
                listed,
                grouping,
                selector,
                period,
                node_ids=json.loads(settings["nodes"]),
                forced=BY_NAME.get(settings["dialect"]),
                by_exporter=by_exporter,
            )
        )
    except SourceError as error:
        raise QueryRefused(str(error)) from None


def open_table(
    folder: str,
    span: tuple[float | None, float | None],
    days: float | None,
    *,
    by_exporter: bool | None,
    engine: str,
) -> OpenPast:
    """
    Return the past that a table of samples has. Raises `PipelineError`.

    Args:
        folder: The table.
        span: Begin and end, Unix time in seconds; None for the table's.
        days: Length of the past in days; None for all of it.
        by_exporter: Whether to read series of an exporter instead of agents; None if there are any.
        engine: The engine that reads the table.

    """
    from quotascope.exporter.sources.prometheus_limits import limits_of_exporters
    from quotascope.pipeline.errors import PipelineError
    from quotascope.pipeline.prometheus.past import Past
    from quotascope.pipeline.prometheus.recording import recorded_past
    from quotascope.pipeline.runs.engine import EngineChoice

    with outputs.bar("listing the series"):
        table = recorded_past(folder, span, days, EngineChoice(engine))
        store = table.store
        settings = _common_settings(folder, table.origins)
        selectors = dict.fromkeys(origin["selector"] for origin in table.origins if origin.get("selector"))
        selector = ",".join(selectors)
        listed = Listed(table.series, store)
        try:
            stock = inventory_of(listed, settings, selector, (table.begin, table.end), by_exporter=by_exporter)
        except PipelineError as error:
            raise type(error)(f"{folder}: {error}") from None
        begin = store.begin_of(stock.beat, table.begin, table.end)
        nodes = store.nodes_of(stock.beat, begin, table.end)
    past = Past(
        server=store,
        address=folder,
        selector=selector,
        begin=begin,
        end=table.end,
        series=stock.series,
        nodes=nodes,
        caveats=stock.caveats,
    )
    instance_label = settings["instance_label"]
    return OpenPast(
        past=past,
        limits=lambda: with_limits(
            past,
            asyncio.run(limits_of_exporters(listed, selector, past.end, instance_label)) if stock.by_exporter else None,
        ),
        gaps=lambda: store.gaps_of(stock.beat, past.begin, past.end, past.step_s),
    )


def _common_settings(folder: str, origins: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings of all ingests of a table. Raises `NoSamplesTable` if they contradict each other."""
    from quotascope.pipeline.prometheus.recording import NoSamplesTable

    settings: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for origin in origins:
        for instance, node in json.loads(origin["nodes"]).items():
            if nodes.setdefault(instance, node) != node:
                raise NoSamplesTable(
                    f"{folder}: {instance} was node {nodes[instance]} in one ingest, and {node} in another"
                )
        for name in ("instance_label", "replica_labels", "dialect"):
            if settings.setdefault(name, origin[name]) != origin[name]:
                raise NoSamplesTable(
                    f"{folder}: was ingested with {name} {settings[name]}, and with {origin[name]}: its series cannot "
                    "be told apart by both"
                )
    return {
        "instance_label": "instance",
        "replica_labels": "[]",
        "dialect": "auto",
        **settings,
        "nodes": json.dumps(nodes),
    }
