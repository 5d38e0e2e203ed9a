"""Recorded series of dashboards (``alerts/rules``), and expressions with the same result without recording rules."""

from __future__ import annotations

from typing import Final

from quotascope.alerts.durations import duration_seconds
from quotascope.metrics.catalog import SPARK_THROTTLED_SECONDS, Family

from .promql import call, compare, grouped, increase, operation, select, span

ENTITY_THROTTLE: Final = "entity:kafka_quota_throttle_time_seconds:max"
"""Throttle time on the worst broker, of throttled entities only."""
ENTITY_THROTTLED_SHARE: Final = "entity:kafka_quota_throttled:share15m"
"""Throttled share: part of the last 15 minutes in which an entity was throttled, on its worst broker, if above 0."""
ENTITY_UTILIZATION: Final = "entity:kafka_quota_utilization_ratio:max"
"""Utilization on the busiest broker."""
ENTITY_UTILIZATION_RECENT: Final = "entity:kafka_quota_utilization_ratio:avg30m"
"""Average utilization of half an hour on the broker where it is highest."""
ENTITY_UTILIZATION_PREDICTED: Final = "entity:kafka_quota_utilization_ratio:predict3h"
"""Average utilization in three hours by the trend of the last six; a lower bound for a client that was held back."""
BROKER_REQUEST: Final = "broker:kafka_quota_request_threads:sum"
"""Request time of all clients, in threads."""
BROKER_CAPACITY_USED: Final = "broker:kafka_quota_request_capacity_used:ratio"
BROKER_HANDLERS_IDLE: Final = "broker:kafka_quota_request_handler_idle:ratio5m"
"""Share of time in which request handlers were idle, of the busiest pool of a node."""
ENTITY_TEAM: Final = "entity:kafka_quota_team:info"
"""Team of each entity in the label `team`, if teams are configured; the value is always 1."""
TREND_WINDOW: Final = "6h"
"""Period of the trend."""
TREND_NEEDS: Final = "4h"
"""Least age of a series with a trend: the first minutes of a client would predict anything."""
WAITS_WINDOW: Final = "10m"
LONGEST_GAP: Final = "1h"
"""Longest gap between scrapes after which a counter is known to continue."""
_SECONDS: Final = "(600 - 1)"
"""Seconds in ten minutes, as long as `span` makes them."""
SHARE_WINDOW: Final = "15m"
"""Period of the throttled share."""
_SHARE_STEP: Final = "30s"
"""Shortest time for which Kafka reports a throttle: no throttle falls between two steps."""


def throttled_share(throttled: str) -> str:
    """
    Return the throttled share of the series of an expression that has a series only while it is throttled.

    The steps are those of a subquery, since the interval of rules depends on Prometheus. Their number is divided by the
    steps of the full window: steps without a sample, such as those before a client came, count as not throttled.
    """
    steps = duration_seconds(SHARE_WINDOW) // duration_seconds(_SHARE_STEP)
    counted = call("count_over_time", f"{throttled}{span(f'{SHARE_WINDOW}:{_SHARE_STEP}')}")
    return f"{counted} / {steps}"


def waiting(*matchers: str) -> str:
    """
    Return the throttle time of each client of a job per second, over the last ten minutes.

    The window is that long because a task reports the waits of many minutes at once, when it ends.

    >>> print(waiting('app="etl"'))
    (
      (
        (
          last_over_time(spark_kafka_throttled_seconds_total{app="etl"}[9m59s])
          unless
          spark_kafka_throttled_seconds_total{app="etl"} offset 10m
        )
        unless
        (
          last_over_time(spark_kafka_throttled_seconds_total{app="etl"}[9m59s])
          >=
          last_over_time(spark_kafka_throttled_seconds_total{app="etl"}[59m59s] offset 10m)
        )
      )
      or
      increase(spark_kafka_throttled_seconds_total{app="etl"}[9m59s])
    ) / (600 - 1)
    """
    grown = growth(SPARK_THROTTLED_SECONDS, WAITS_WINDOW, *matchers)
    return f"{grouped(grown)} / {_SECONDS}"


def growth(family: Family, window: str, *matchers: str) -> str:
    """
    Return the growth of a counter of a job; of a counter that is younger than the window, its value.

    A client's series begins when its first task ends, with all that the task counted, and `increase` sees no growth in
    a first sample. Every counter of a job begins at 0 with the job. A counter with a sample within an hour before the
    window, not above the current one, continues after a gap between scrapes: it is not young. (If Prometheus begins to
    scrape in the middle of a job, or after more than an hour, all is growth, for one window.)
    """
    newest = call("last_over_time", select(family, *matchers, window=window))
    at_its_start = select(family, *matchers, offset=window)
    earlier = call("last_over_time", select(family, *matchers, window=LONGEST_GAP, offset=window))
    begun = grouped(operation(newest, "unless", at_its_start))
    after_a_gap = grouped(operation(newest, ">=", earlier))
    young = operation(begun, "unless", after_a_gap)
    return operation(grouped(young), "or", increase(family, window, *matchers))


def share_of_pools(by_pool: str, of_all: str) -> str:
    """
    Return the idle share of the busiest pool, at most 1: averages over a window may be a little above.

    A total clearly above 1 is the sum of two pools, either of which may be busy; it is no share of any.
    """
    return call("clamp_max", operation(by_pool, "or", grouped(compare(of_all, "<=", 1.05))), "1")
