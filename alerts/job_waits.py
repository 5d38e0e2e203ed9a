"""How long jobs wait: the same number for alerts and dashboards."""

from __future__ import annotations

from typing import Final

from quotascope.metrics.catalog import SPARK_THROTTLED_SECONDS, Family

from .promql import grouped, increase, operation, select

WINDOW: Final = "10m"
_SECONDS: Final = "(10 * 60)"


def waiting(*matchers: str) -> str:
    """
    Throttle time told to each client of a job per second, over the last ten minutes.

    As long as that because a task tells its waits when it ends, many minutes' at once.

    >>> print(waiting())
    (
      (last_over_time(spark_kafka_throttled_seconds_total[10m]) unless spark_kafka_throttled_seconds_total offset 10m)
      or
      increase(spark_kafka_throttled_seconds_total[10m])
    ) / (10 * 60)
    """
    grown = growth(SPARK_THROTTLED_SECONDS, WINDOW, *matchers)
    return f"{grouped(grown)} / {_SECONDS}"


def growth(family: Family, window: str, *matchers: str) -> str:
    """
    How much a counter of a job grew; where it is younger than the window, all of it.

    A client is known when its first task ends: its series begins with all that this task counted, and `increase` sees no growth
    in a beginning. Every counter of a job begins at 0 with the job. (To a Prometheus that begins to look in the middle
    of a job all is growth, for one window.)
    """
    newest = f"last_over_time({select(family, *matchers, window=window)})"
    before = select(family, *matchers, offset=window)
    young = f"({newest} unless {before})"
    return operation(young, "or", increase(family, window, *matchers))
