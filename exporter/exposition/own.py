"""Series about the exporter itself, and about its push over OTLP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from typing import Final

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ..snapshot import SourceHealth
from .series import Reader, Row, View


def _of_source(value: Callable[[SourceHealth], float | None]) -> Reader:
    def read(view: View) -> Iterator[Row]:
        for source in view.snapshot.sources:
            yield (source.name,), value(source)

    return read


def _dialects(view: View) -> Iterator[Row]:
    for source in view.snapshot.sources:
        yield (source.name, source.dialect), 1


def _source_ages(view: View) -> Iterator[Row]:
    for source in view.snapshot.sources:
        if source.up and source.read_at is not None:
            yield (source.name,), max(0.0, view.now - source.read_at)


def _standing_by(view: View) -> Iterator[Row]:
    for source in view.snapshot.sources:
        if source.stand_by_of is not None:
            yield (source.name, source.stand_by_of), 1


def _limits_age(view: View) -> Iterator[Row]:
    read_at = view.snapshot.limits_health.read_at
    yield (), None if read_at is None else max(0.0, view.now - read_at)


def _limits_errors(view: View) -> Iterator[Row]:
    yield (), view.snapshot.limits_health.errors_total


def _snapshot_age(view: View) -> Iterator[Row]:
    yield (), max(0.0, view.now - view.snapshot.taken_at)


def _restarts(view: View) -> Iterator[Row]:
    for task, count in view.snapshot.restarts.items():
        yield (task,), count


def _reloaded(view: View) -> Iterator[Row]:
    reload = view.snapshot.reload
    yield (), None if reload is None else reload.error is None


def _reloaded_at(view: View) -> Iterator[Row]:
    reload = view.snapshot.reload
    yield (), None if reload is None else reload.succeeded_at


def _entities(view: View) -> Iterator[Row]:
    folds, layout = view.snapshot.folds, view.snapshot.shown.layout
    yield ("exported",), len(layout) - int(layout.stand_ins.sum())
    yield ("overflow",), folds.overflow + view.snapshot.callbacks.folded
    yield ("excluded",), folds.excluded
    yield ("idle",), folds.idle
    stale = (sum(node.stale_entities.values()) for node in view.snapshot.nodes)
    yield ("stale",), sum(stale)


def _dropped(view: View) -> Iterator[Row]:
    dropped = view.snapshot.folds.series_dropped
    for reason in ("overflow", "excluded", "idle", "detail"):
        yield (reason,), dropped.get(reason, 0)


def _build(_view: View) -> Iterator[Row]:
    yield (own_version(),), 1


@cache
def own_version() -> str:
    """The version of the installed package."""
    return version("quotascope")


def _discovered(view: View) -> Iterator[Row]:
    for discovery in view.snapshot.discoveries:
        yield (discovery.name,), discovery.targets


def _discovery_errors(view: View) -> Iterator[Row]:
    for discovery in view.snapshot.discoveries:
        yield (discovery.name,), discovery.errors_total


def _samples(view: View) -> Iterator[Row]:
    sampling = view.snapshot.sampling
    yield (), None if sampling is None else sampling.samples


def _missed_samples(view: View) -> Iterator[Row]:
    sampling = view.snapshot.sampling
    yield (), None if sampling is None else sampling.missed


def _exports(view: View) -> Iterator[Row]:
    push = view.snapshot.push
    for outcome, count in push.exports_total.items() if push else ():
        yield (outcome,), count


def _points(view: View) -> Iterator[Row]:
    push = view.snapshot.push
    for outcome, count in push.points_total.items() if push else ():
        yield (outcome,), count


READERS: Final[Mapping[Family, Reader]] = {
    catalog.DISCOVERED_SOURCES: _discovered,
    catalog.DISCOVERY_ERRORS: _discovery_errors,
    catalog.SAMPLES: _samples,
    catalog.SAMPLES_MISSED: _missed_samples,
    catalog.SOURCE_UP: _of_source(lambda source: source.up),
    catalog.SOURCE_DURATION_SECONDS: _of_source(lambda source: source.duration_seconds),
    catalog.SOURCE_READINGS: _of_source(lambda source: source.readings),
    catalog.SOURCE_AGE_SECONDS: _source_ages,
    catalog.SOURCE_STAND_BY: _standing_by,
    catalog.SOURCE_DIALECT_INFO: _dialects,
    catalog.LIMITS_AGE_SECONDS: _limits_age,
    catalog.LIMITS_REFRESH_ERRORS: _limits_errors,
    catalog.CONFIG_LAST_RELOAD_SUCCESSFUL: _reloaded,
    catalog.CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS: _reloaded_at,
    catalog.BACKGROUND_RESTARTS: _restarts,
    catalog.SNAPSHOT_AGE_SECONDS: _snapshot_age,
    catalog.ENTITIES: _entities,
    catalog.SERIES_DROPPED: _dropped,
    catalog.BUILD_INFO: _build,
    catalog.OTLP_EXPORTS: _exports,
    catalog.OTLP_POINTS: _points,
}
