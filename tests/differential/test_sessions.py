"""Random sessions of each subject, replayed by Kafka's classes and by ours; what one leaves out stands in its module."""

from typing import Any

import pytest
from tests.differential import (
    byte_rates,
    callbacks,
    channels,
    clients,
    connections,
    histograms,
    names,
    quota_managers,
    registry,
    statistics,
    validation,
)
from tests.differential.comparison import Operation, compare
from tests.differential.drive import TOTAL, Budget, Subject, drive
from tests.differential.kafka import Kafka
from tests.differential.shapes import DAY_MS, EPOCH_MS, Settings, Temper
from tests.differential.statistics import Kind

from quotascope.metrics import TimeUnit

pytestmark = [pytest.mark.java, pytest.mark.timeout(300 + TOTAL // 1000)]
SUBJECTS: tuple[Subject[Any], ...] = (
    byte_rates.SUBJECT,
    callbacks.SUBJECT,
    channels.SUBJECT,
    clients.SUBJECT,
    connections.SUBJECT,
    histograms.SUBJECT,
    names.SUBJECT,
    quota_managers.SUBJECT,
    registry.SUBJECT,
    statistics.SUBJECT,
    validation.SUBJECT,
)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda each: each.name)
def test_sessions(kafka: Kafka, budget: Budget, subject: Subject[Any]) -> None:
    """Whatever happens, both sides answer the same, to the last bit."""
    drive(kafka, budget, subject)


def test_windows_beyond_32_bits(kafka: Kafka, budget: Budget) -> None:
    """Counting more than 2^31 windows in the divisor of a rate wraps as in Java; chance hardly ever gets there."""
    long = Settings(samples=2, window_ms=90 * DAY_MS)
    rate = Kind(name="Rate", unit=TimeUnit.SECONDS, inner="WindowedSum", own_window=0)
    calm = Temper(steady=True, tame=True, coarse=False)
    shape = statistics.Shape(origin_ms=EPOCH_MS, kind=rate, settings=long, temper=calm)
    operations = (
        Operation("record", 0, (1.0,)),
        Operation("record", 30 * DAY_MS, (1.0,)),
        Operation("config", 0, (Settings(samples=2, window_ms=1),)),
        Operation("window", 0),
        Operation("measure", 0),
    )
    compared = compare(kafka, statistics.SUBJECT.replay(shape, operations, kafka.release))
    budget.compared[statistics.SUBJECT.name] += compared
