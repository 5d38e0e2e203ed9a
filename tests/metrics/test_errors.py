"""The texts of errors."""

import pickle

import pytest

from quotascope.metrics import (
    ConnectionThrottled,
    DuplicateMetric,
    InvalidConfig,
    InvalidHierarchy,
    MalformedName,
    MetricName,
    MetricsError,
    NotMeasurable,
    QuotaViolation,
    ThrottlingQuotaExceeded,
    TooManyConnections,
    UnknownConnection,
)

NAME = MetricName("byte-rate", "Produce", {"user": "a\nb"})
ERRORS = [
    (InvalidConfig("no samples"), "no samples"),
    (InvalidHierarchy("s\n"), "a sensor meets 's\\n' twice among its parents and theirs"),
    (DuplicateMetric(NAME), f"a metric named {NAME} already exists"),
    (NotMeasurable(NAME), f"the metric {NAME} is a gauge, not a measurable"),
    (MalformedName("x\n" * 5_000, "bad"), "bad: " + repr("x\n" * 100)),
    (QuotaViolation(NAME, 6.0, 5.0), f"{NAME} has value 6.0, its bound is 5.0"),
    (ThrottlingQuotaExceeded(1_500), "the throttling quota has been exceeded, wait 1500 ms"),
    (ConnectionThrottled("10.0.0.1", 5, 7), "10.0.0.1 opens connections too fast, throttled for 7 ms"),
    (TooManyConnections("10.0.0.1", 3), "10.0.0.1 may not have more than 3 connections"),
    (UnknownConnection("10.0.0.1"), "10.0.0.1 has no connection that could be closed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "text"), ERRORS, ids=lambda value: type(value).__name__
)
def test_says_what_is_wrong_in_one_line(error: MetricsError, text: str) -> None:
    """Hostile names are escaped and cut."""
    assert str(error) == text
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "error", [error for error, _ in ERRORS], ids=lambda error: type(error).__name__
)
def test_survives_pickling(error: MetricsError) -> None:
    """An error of a worker process arrives with its fields."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copy), str(copy)) == (type(error), str(error))


def test_a_violation_need_not_know_its_metric() -> None:
    """Its statistic is only there where the sensor that checks gives it."""
    assert QuotaViolation(NAME, 6.0, 5.0).metric is None
