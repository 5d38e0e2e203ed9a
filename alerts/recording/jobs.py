"""Series of Spark jobs; their data comes from the Spark listener."""

from __future__ import annotations

from quotascope.metrics import catalog

from .. import recorded
from ..job_waits import waiting
from ..levels import Levels
from ..promql import aggregate
from ..rule import Group, Record


def jobs(levels: Levels) -> Group:
    """Throttle time of every job."""
    once = aggregate(
        "max",
        levels.of(*catalog.SPARK_THROTTLED_SECONDS.labels),
        waiting(),
    )
    return Group(
        name="quotascope-jobs",
        rules=(
            Record(
                name=recorded.APP_THROTTLED_RATE,
                expr=aggregate("sum", levels.of("app", "query", "side"), once),
                meaning="Throttle time of the Kafka clients of a Spark job per second, by query and side.",
            ),
        ),
    )
