"""How much the random tests try: `desk` repeats the same few examples, `thorough` looks for new ones."""

import os

import pytest
from hypothesis import HealthCheck, settings
from tests.spark_listener.task.old_python import VERSION, old_python

pytest_plugins = ["tests.second_try", "tests.cluster.fixtures", "tests.spark.fixtures"]

# Contract tests run once per class that inherits them; a busy machine is no reason to fail.
settings.register_profile(
    "desk",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("desk"), derandomize=False, max_examples=2_000
)
settings.load_profile(os.environ.get("QUOTASCOPE_HYPOTHESIS_PROFILE", "desk"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites the golden files instead of comparing with them: read the diff."""
    parser.addoption("--update-golden", action="store_true")


def pytest_report_header() -> str:
    """Say what a machine cannot try."""
    found = old_python() or "none here: vermin alone checks what tasks import"
    return f"Python {VERSION} for tasks of old Spark clusters: {found}"
