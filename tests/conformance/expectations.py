"""What a step expects, against what the engine answered; an expectation that is not there is met."""

import math
from collections.abc import Callable

from tests.conformance.fields import Fields, Unmet

from quotascope.metrics import QuotaViolation

TOLERANCE = 1e-9
"""Absolute, where a vector gives none; 0 asks for the very same double."""


def number(step: Fields, actual: float, key: str = "expect") -> None:
    """Compare with `expect`, `expect_min` and `expect_max`, which may go with any number."""
    tolerance = step.number("tol", TOLERANCE)
    if key in step:
        expected = step.number(key)
        if not _close(expected, actual, tolerance):
            raise Unmet(f"{key} {expected!r} within {tolerance!r}, got {actual!r}")
    if f"{key}_min" in step and not step.number(f"{key}_min") <= actual:
        raise Unmet(f"{key}_min {step.number(f'{key}_min')!r}, got {actual!r}")
    if f"{key}_max" in step and not actual <= step.number(f"{key}_max"):
        raise Unmet(f"{key}_max {step.number(f'{key}_max')!r}, got {actual!r}")


def _close(expected: float, actual: float, tolerance: float) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return expected == actual or abs(expected - actual) <= tolerance


def flag(step: Fields, actual: bool, key: str = "expect") -> None:  # noqa: FBT001 - the value itself
    """Compare a truth value."""
    if key in step and step.flag(key) != actual:
        raise Unmet(f"{key} {step.flag(key)}, got {actual}")


def text(step: Fields, actual: str, key: str = "expect") -> None:
    """Compare a text."""
    if key in step and step.text(key) != actual:
        raise Unmet(f"{key} {step.text(key)!r}, got {actual!r}")


def same(actual: object, expected: object, what: str) -> None:
    """Compare anything."""
    if actual != expected:
        raise Unmet(f"{what} {expected!r}, got {actual!r}")


def violation(step: Fields, action: Callable[[], object]) -> None:
    """Run something that may violate a quota and compare the violation; without `expect_violation` none may occur."""
    expected = step.raw("expect_violation", None)
    try:
        action()
    except QuotaViolation as error:
        if expected is None:
            raise Unmet(f"no violation, got {error}") from error
        _same_violation(step.fields("expect_violation"), error)
    else:
        if expected is not None:
            raise Unmet(f"a violation {expected!r}, got none")


def _same_violation(expected: Fields, error: QuotaViolation) -> None:
    same(error.metric_name.name, expected.text("metric"), "violated metric")
    for key, actual in (("value", error.value), ("bound", error.bound)):
        if key in expected and not _close(expected.number(key), actual, TOLERANCE):
            raise Unmet(f"violation with {key} {expected.number(key)!r}, got {actual!r}")
    expected.done()
