"""
Random sessions of each subject, replayed by Kafka's classes and by ours.

What one leaves out stands in its module.
"""

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
from tests.differential.kafka import CURRENT, Kafka
from tests.differential.shapes import DAY_MS, EPOCH_MS, Settings, Temper
from tests.differential.statistics import Kind
from tests.differential.wire import Word

from quotascope.metrics.engine.rate import TimeUnit

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


OF_WINDOWS: tuple[Subject[Any], ...] = (
    histograms.SUBJECT,
    quota_managers.SUBJECT,
    statistics.SUBJECT,
)
"""Subjects that have changed since Kafka 2.8 and 3.7; names, channels and registries have not."""
OF_RELEASE: dict[str, tuple[Subject[Any], ...]] = {
    "2.8": OF_WINDOWS,
    "3.4": (validation.SUBJECT,),  # the last release whose controllers store any number
    "3.7": (*OF_WINDOWS, validation.SUBJECT),
    **dict.fromkeys(CURRENT, SUBJECTS),
}
CASES = [(release, subject) for release, subjects in OF_RELEASE.items() for subject in subjects]


@pytest.mark.parametrize(
    ("kafka", "subject"), CASES, indirect=["kafka"], ids=lambda parameter: getattr(parameter, "name", parameter)
)
def test_sessions(kafka: Kafka, budget: Budget, subject: Subject[Any]) -> None:
    """After any operations, both sides give the same answers to the last bit."""
    whole = sum(subject.share for subject in OF_RELEASE[kafka.release.version])
    one_of_several = len(OF_RELEASE[kafka.release.version]) > 1
    drive(kafka, budget, subject, subject.share / whole if one_of_several else subject.share)


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


def test_a_mutation_throttle_of_zero_where_the_clock_goes_back(kafka: Kafka, budget: Budget) -> None:
    """A debt that rounds to 0 ms throttles by the step back, up to 4.1; a request that was never violated does not."""
    shape = quota_managers.Shape(
        client=(11, 1),
        controller=(11, 1),
        types=(Word("ControllerMutation"),),
        users=("alice",),
        clients=("app",),
        entities=((None, quota_managers.DEFAULT_WORD),),
        temper=Temper(steady=True, tame=True, coarse=False),
        settings=Settings(samples=11, window_ms=1000, bound=10.0),
    )
    number = Word("0")
    operations = (
        Operation("update", 0, (quota_managers.MUTATIONS, *shape.entities[0], 10.0)),
        Operation("mutation", 0, (number, Word("permissive"), "alice", "app")),
        Operation("left", -1_000, (number,)),
        Operation("charge", 1_198, (number, 110.00000000000003)),
        Operation("left", 0, (number,)),
        Operation("left", -11_000, (number,)),
    )
    subject = quota_managers.SUBJECT
    budget.compared[subject.name] += compare(kafka, subject.replay(shape, operations, kafka.release))
