"""
The series that our recording rules make: ``level:metric:operations``.

``entity`` has the labels cluster, user and client_id (typed ones quota_type as well), over all
brokers; ``user``, ``broker``, ``cluster`` and ``app`` are what they say. Every rule keeps the
cluster's label and counts an entity once, however many exporters or Prometheus servers there are.
"""

from __future__ import annotations

from typing import Final

from quotascope.metrics.catalog import BUILD_INFO, CALLBACK_THROTTLE_TIME_SECONDS, SPARK_THROTTLED_SECONDS, Family

from .links import Site
from .promql import above, aggregate, but_not, call, grouped, increase, operation, select
from .thresholds import STORM, THROTTLED

ENTITY_THROTTLE: Final = "entity:kafka_quota_throttle_time_seconds:max"
"""Throttle time on the worst broker; only of entities that are throttled."""
ENTITY_UTILIZATION: Final = "entity:kafka_quota_utilization_ratio:max"
"""Utilization on the busiest broker."""
ENTITY_HEADROOM: Final = "entity:kafka_quota_headroom_ratio:min"
"""1 - utilization on the busiest broker: what is left; negative above the limit."""
ENTITY_UTILIZATION_RECENT: Final = "entity:kafka_quota_utilization_ratio:avg30m"
"""Average of half an hour on the broker where that is highest."""
ENTITY_UTILIZATION_PREDICTED: Final = "entity:kafka_quota_utilization_ratio:predict3h"
"""That average in three hours by its trend of the last six."""
ENTITY_PRODUCE: Final = "entity:kafka_quota_produce_bytes_per_second:sum"
ENTITY_FETCH: Final = "entity:kafka_quota_fetch_bytes_per_second:sum"
ENTITY_REQUEST: Final = "entity:kafka_quota_request_threads:sum"
USER_BYTES: Final = "user:kafka_quota_bytes_per_second:sum"
"""Produced and fetched bytes of a user, all client-ids."""
CLUSTER_BYTES: Final = "cluster:kafka_quota_bytes_per_second:sum"
"""Produced and fetched bytes of all measured clients."""
BROKER_REQUEST: Final = "broker:kafka_quota_request_threads:sum"
"""Request time of all clients, in threads."""
BROKER_EXEMPT: Final = "broker:kafka_quota_exempt_request_threads:max"
BROKER_CAPACITY: Final = "broker:kafka_quota_request_capacity_threads:max"
BROKER_CAPACITY_USED: Final = "broker:kafka_quota_request_capacity_used:ratio"
BROKER_HANDLERS_IDLE: Final = "broker:kafka_quota_request_handler_idle:ratio5m"
"""Share of time in which request handlers were idle, of the busiest pool of a node."""
BROKER_DELAY_QUEUE: Final = "broker:kafka_quota_delay_queue_size:max"
"""Muted connections by broker and quota_type."""
BROKER_THROTTLED_RATE: Final = "broker:kafka_quota_request_throttled_seconds:rate5m"
"""Throttle time of clients per second: about the number of connections that only wait."""
CLUSTER_DELAY_QUEUE: Final = "cluster:kafka_quota_delay_queue_size:sum"
"""Muted connections by quota_type."""
CLUSTER_THROTTLED_RATE: Final = "cluster:kafka_quota_request_throttled_seconds:rate5m"
CLUSTER_THROTTLED_BASELINE: Final = "cluster:kafka_quota_request_throttled_seconds:baseline"
"""The usual throttle time: the highest of the day before, the same hour yesterday and a week ago."""
CLUSTER_THROTTLED_ENTITIES: Final = "cluster:kafka_quota_throttled_entities:count"
"""Entities throttled for longer than the threshold on average, 0 when there are none."""
CLUSTER_THROTTLED_ENTITIES_BASELINE: Final = "cluster:kafka_quota_throttled_entities:baseline"
CLUSTER_REFUSALS: Final = "cluster:kafka_quota_throttling_errors:rate5m"
"""Refusals per second by request."""
CLUSTER_REFUSALS_BASELINE: Final = "cluster:kafka_quota_throttling_errors:baseline"
EXPORTERS_BASELINE: Final = "cluster:quotascope_exporters:baseline"
"""How many exporters could be scraped for most of the last day."""
APP_THROTTLED_RATE: Final = "app:spark_kafka_throttled_seconds:rate10m"
"""Throttle time of a Spark job per second, by query and side."""
ENTITY_OWNER: Final = "entity:kafka_quota_owner:info"
"""Always 1: the label `owner` of each entity, if owners are configured; without that label for entities that have none."""
INSTANCE_BURN: Final = "instance:kafka_quota_budget_burn:now"
"""Of each entity with an objective on each broker, as an exporter sees it: 1 / budget while it is throttled, else 0."""
BURNS: Final = {
    minutes: f"entity:kafka_quota_budget_burn:rate{text}"
    for minutes, text in ((5, "5m"), (30, "30m"), (60, "1h"), (360, "6h"), (4320, "3d"))
}
"""By minutes: how fast the budget of an objective was spent on the worst broker; at 1 it is spent when its 30 days end."""
TREND_WINDOW: Final = "6h"
"""The past that the trend is taken from."""
TREND_NEEDS: Final = "4h"
"""The history without which there is no trend: the first minutes of a client would promise anything."""
WAITS_WINDOW: Final = "10m"
LONGEST_GAP: Final = "1h"
"""The longest gap between scrapes after which a counter is known to continue."""
_SECONDS: Final = "(10 * 60)"


def exporters(site: Site) -> str:
    """How many exporters of each cluster can be scraped."""
    each = aggregate("group", site.keys("instance"), select(BUILD_INFO))
    return aggregate("count", site.keys(), each)


def of_callbacks(site: Site) -> str:
    """How many are throttled on one broker: their labels are the callback's, so that they cannot be put together."""
    throttled = above(select(CALLBACK_THROTTLE_TIME_SECONDS), site.value(THROTTLED))
    once = aggregate("count", site.keys("instance", "broker", "quota_type"), throttled)
    return aggregate("max", site.keys(), once)


def storm(site: Site, number: str) -> str:
    """
    Where a number of throttled entities, such as ``CLUSTER_THROTTLED_ENTITIES``, is too high for an alert each.

    Clients of a custom callback have none: `KafkaQuotaCallbackThrottled` is one for each broker and quota type.
    """
    of_callbacks_only = above(grouped(of_callbacks(site)), site.value(STORM))
    return but_not(above(number, site.value(STORM)), of_callbacks_only, site.keys())


def waiting(*matchers: str) -> str:
    """
    Throttle time of each client of a job per second, over the last ten minutes.

    The window is that long because a task reports the waits of many minutes at once, when it ends.

    >>> print(waiting('app="etl"'))
    (
      (
        (
          last_over_time(spark_kafka_throttled_seconds_total{app="etl"}[10m])
          unless
          spark_kafka_throttled_seconds_total{app="etl"} offset 10m
        )
        unless
        (
          last_over_time(spark_kafka_throttled_seconds_total{app="etl"}[10m])
          >=
          last_over_time(spark_kafka_throttled_seconds_total{app="etl"}[1h] offset 10m)
        )
      )
      or
      increase(spark_kafka_throttled_seconds_total{app="etl"}[10m])
    ) / (10 * 60)
    """
    grown = growth(SPARK_THROTTLED_SECONDS, WAITS_WINDOW, *matchers)
    return f"{grouped(grown)} / {_SECONDS}"


def growth(family: Family, window: str, *matchers: str) -> str:
    """
    How much a counter of a job grew; where it is younger than the window, all of it.

    A client is known when its first task ends: its series begins with all that this task counted, and `increase` sees no growth
    in a beginning. Every counter of a job begins at 0 with the job. One that was there within an hour before the window, and was not higher,
    continues after a gap between scrapes: it is not young. (To a Prometheus that begins to look in the middle
    of a job, or after more than an hour, all is growth, for one window.)
    """
    newest = call("last_over_time", select(family, *matchers, window=window))
    at_its_start = select(family, *matchers, offset=window)
    earlier = call("last_over_time", select(family, *matchers, window=LONGEST_GAP, offset=window))
    begun = grouped(operation(newest, "unless", at_its_start))
    after_a_gap = grouped(operation(newest, ">=", earlier))
    young = operation(begun, "unless", after_a_gap)
    return operation(grouped(young), "or", increase(family, window, *matchers))
