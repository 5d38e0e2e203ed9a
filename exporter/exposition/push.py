"""Series about the push over OTLP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .series import Reader, Row, View


def _exports(view: View) -> Iterator[Row]:
    push = view.snapshot.push
    for outcome, count in push.exports_total.items() if push else ():
        yield (outcome,), count


def _points(view: View) -> Iterator[Row]:
    push = view.snapshot.push
    for outcome, count in push.points_total.items() if push else ():
        yield (outcome,), count


READERS: Mapping[Family, Reader] = {
    catalog.OTLP_EXPORTS: _exports,
    catalog.OTLP_POINTS: _points,
}
