"""Export by OpenTelemetry's SDK, or by any other implementation of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from quotascope.metrics.catalog import FamilyType
from quotascope.metrics.catalog.otel_names import otel_name, ucum

from ..accounting import ThrottleAccount
from .rows import READINGS, ClientReading


def observe(account: ThrottleAccount, meter: Meter) -> None:
    """
    Show an account through observable instruments: `observe(account, get_meter("my.program"))`.

    Behind a Collector, Prometheus derives the same names of series from these names and units as `ThrottleCollector`
    has. Empty labels are left out, which Prometheus treats alike.
    """
    for reading in READINGS:
        family = reading.family
        create = meter.create_observable_counter if family.type is FamilyType.COUNTER else meter.create_observable_gauge
        create(otel_name(family), callbacks=[_callback(account, reading)], unit=ucum(family), description=family.help)


def _callback(account: ThrottleAccount, reading: ClientReading) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def observations(_: CallbackOptions) -> Iterator[Observation]:
        for values, value in reading.rows(account):
            labels = zip(reading.family.labels, values, strict=True)
            yield Observation(value, {name: text for name, text in labels if text})

    return observations
