"""What waiting costs a job."""

from __future__ import annotations

from quotascope.alerts.promql import above, both, select
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ...model import Row
from ...scope import Scope
from ...shortcuts import graph, line
from .series import chosen, grown


def failures(scope: Scope) -> Row:
    """What waiting costs: attempts that failed and were repeated."""
    retries = graph(
        "Repeated task attempts, by cause",
        f"{catalog.SPARK_TASK_RETRIES.help} kafka_quota is a refusal (error 89), kafka_timeout_throttled a timeout while the client was throttled. Causes that never occurred are left out.",
        "short",
        line(
            _that_occurred(scope, catalog.SPARK_TASK_RETRIES),
            "{{app}} {{cause}}",
        ),
        stacked=True,
    )
    failed = graph(
        "Failed task attempts, by cause",
        f"{catalog.SPARK_TASK_FAILURES.help} Causes that never occurred are left out.",
        "short",
        line(
            _that_occurred(scope, catalog.SPARK_TASK_FAILURES),
            "{{app}} {{cause}}",
        ),
        stacked=True,
    )
    other = graph(
        "Repeated stages and Admin calls, lost executors",
        "Stages started again, Admin calls repeated after a refusal, and executors lost.",
        "short",
        line(grown(scope, catalog.SPARK_STAGE_RETRIES, "app"), "{{app}} stages"),
        line(
            grown(scope, catalog.SPARK_ADMIN_QUOTA_RETRIES, "app"),
            "{{app}} Admin calls",
        ),
        line(grown(scope, catalog.SPARK_EXECUTORS_LOST, "app"), "{{app}} executors"),
    )
    return Row(title="Attempts", panels=((8, retries), (8, failed), (8, other)))


def _that_occurred(scope: Scope, family: Family) -> str:
    labels = ("app", "cause")
    occurred = above(select(family, *chosen(family)), 0)
    return both(grown(scope, family, *labels), occurred, labels)
