"""A snapshot as the text that a scrape is answered with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import (
    generate_latest as generate_openmetrics,
)
from prometheus_client.registry import Collector

from quotascope.metrics.catalog import Family, FamilyType, families

from ..snapshot import Snapshot
from .families import series_of
from .rows import Exposed, encodable, label_names

try:
    from isal import igzip as implementation
except ImportError:  # not built for every platform
    import gzip as implementation  # type: ignore[no-redef]

GZIP_LEVEL: Final = 1
"""isal's level 1 is as small as zlib's level 6, in a tenth of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """One text format of Prometheus."""

    content_type: str
    generate: Callable[[CollectorRegistry], bytes]
    end: bytes = b""
    """The last line, if the format has a line that marks the end."""


TEXT: Final = TextFormat(
    content_type="text/plain; version=0.0.4; charset=utf-8", generate=generate_latest
)
OPENMETRICS: Final = TextFormat(
    content_type="application/openmetrics-text; version=1.0.0; charset=utf-8",
    generate=generate_openmetrics,
    end=b"# EOF\n",
)


class SnapshotCollector(Collector):
    """
    The families of the catalog for prometheus_client, filled from one snapshot, in the catalog's order.

    Families without series are left out. ``cluster`` becomes one more label of every
    series; ``now`` is the Unix time in seconds that ages refer to.
    """

    def __init__(
        self, snapshot: Snapshot, now: float, cluster: str | None = None
    ) -> None:
        self._view = Exposed(snapshot, now)
        self._cluster = () if cluster is None else (encodable(cluster),)

    def collect(self) -> Iterator[Metric]:
        """The families that have something to show."""
        for family in families():
            series = list(series_of(family, self._view))
            labels = label_names(family, self._view.snapshot)
            if self._cluster:
                labels = (*labels, "cluster")
            metric = _empty_metric(family, labels)
            for values, value in series:
                metric.add_metric([*values, *self._cluster], value)
            if series:
                yield metric


def exposition(
    snapshot: Snapshot,
    now: float,
    text_format: TextFormat = TEXT,
    cluster: str | None = None,
) -> bytes:
    """
    The text of a snapshot, written by prometheus_client.

    ``now`` is the Unix time in seconds that ages refer to. For one snapshot after the other there is ``Renderer``.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(snapshot, now, cluster))
    return text_format.generate(registry)


def head(family: Family, text_format: TextFormat) -> bytes:
    """What stands before the series of a family, but for the end of its last line."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_WithoutSeries(family))
    text = text_format.generate(registry)
    return text.removesuffix(text_format.end).removesuffix(b"\n")


class _WithoutSeries(Collector):
    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        return [_empty_metric(self._family, ())]


def _empty_metric(
    family: Family, labels: tuple[str, ...]
) -> GaugeMetricFamily | CounterMetricFamily:
    if family.type is FamilyType.COUNTER:
        return CounterMetricFamily(family.name, family.help, labels=labels)
    return GaugeMetricFamily(family.name, family.help, labels=labels)


def gzipped(text: bytes) -> bytes:
    """The text in gzip format, at a level that costs no more than writing the text."""
    return implementation.compress(text, GZIP_LEVEL, mtime=0)


def choose_format(accept: str) -> TextFormat:
    """
    The format that an ``Accept`` header prefers.

    OpenMetrics where version 1.0.0 of it is accepted, or any version; text 0.0.4 otherwise.
    """
    offers = {TEXT: 0.0, OPENMETRICS: 0.0}
    for media, quality, version in _ranges(accept):
        if media == "application/openmetrics-text" and version in {None, "1.0.0"}:
            offers[OPENMETRICS] = max(offers[OPENMETRICS], quality)
        elif media in {"text/plain", "text/*", "*/*"}:
            offers[TEXT] = max(offers[TEXT], quality)
    return OPENMETRICS if offers[OPENMETRICS] > offers[TEXT] else TEXT


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an ``Accept-Encoding`` header allows gzip."""
    codings = {coding: quality for coding, quality, _ in _ranges(accept_encoding)}
    return codings.get("gzip", codings.get("*", 0.0)) > 0


def _ranges(header: str) -> Iterator[tuple[str, float, str | None]]:
    """Each part of the header with its quality, 0 for one that is no number, and the parameter ``version``."""
    for part in header.lower().split(","):
        name, *given = (piece.strip() for piece in part.split(";"))
        pairs = (each.partition("=") for each in given)
        parameters = {key.strip(): value.strip() for key, _, value in pairs}
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        yield name, quality, parameters.get("version")
