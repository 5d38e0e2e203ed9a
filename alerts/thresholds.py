"""
Every threshold of the alerts: its value, the reason for it, and when to change it.

The dashboards draw the same numbers, ``docs/reference/alerts.yaml`` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from quotascope.metrics.catalog import thresholds as shared

Threshold: TypeAlias = shared.Threshold

THROTTLED_SHARE: Final = Threshold(
    value=0.4,
    unit="ratio",
    meaning="throttled share: part of the last 15 minutes in which an entity was throttled",
    reason="6 of 15 minutes are no burst, however short each throttle is",
    change="0.2 for interactive clients",
)
THROTTLED: Final = Threshold(
    value=0.5,
    unit="s",
    meaning="average throttle time of an entity",
    reason="long single throttles: a request is that much larger than the limit allows",
    change="0.1 for interactive clients",
)
PERSISTENT: Final = Threshold(
    value=0.5,
    unit="ratio",
    meaning="average utilization of 15 minutes",
    reason="throttles below it are bursts",
    change="lower if bursts matter",
)
NEAR_LIMIT: Final = shared.NEAR_LIMIT
PREDICTION: Final = Threshold(
    value=0.6,
    unit="ratio",
    meaning="utilization from which a trend is followed",
    reason="trends of small values are noise",
    change="lower for clients that grow within hours",
)
CLIENT_TIMEOUT: Final = Threshold(
    value=30.0,
    unit="s",
    meaning="average throttle time of an entity",
    reason="default `request.timeout.ms`",
    change="your shortest request timeout",
)
SPIKE: Final = Threshold(
    value=25.0,
    unit="s/s",
    meaning="throttle time of a cluster per second",
    reason="25 connections that only wait",
    change="connections of your three largest applications",
)
SPIKE_FACTOR: Final = Threshold(
    value=4.0,
    unit="times",
    meaning="throttle time of a cluster / its baseline",
    reason="nightly jobs are in the baseline",
    change="2 for even load, higher for load that swings",
)
SPIKE_ENTITIES: Final = Threshold(
    value=5.0,
    unit="entities",
    meaning="entities throttled at once",
    reason="fewer have their own alerts",
    change="1 if a single client is critical",
)
MANY_ENTITIES: Final = Threshold(
    value=20.0,
    unit="entities",
    meaning="entities throttled at once",
    reason="suggests a changed limit or broker",
    change="a tenth of the usual entities, at least 10",
)
MANY_ENTITIES_FACTOR: Final = Threshold(
    value=3.0,
    unit="times",
    meaning="entities throttled at once / their baseline",
    reason="some clusters throttle dozens daily",
    change="as SPIKE_FACTOR",
)
STORM: Final = Threshold(
    value=50.0,
    unit="entities",
    meaning="entities throttled, or near limits, at once",
    reason="more alerts at once are not read one by one",
    change="as many as you read",
)
SHADOW_ENTITIES: Final = Threshold(
    value=10.0,
    unit="entities",
    meaning="entities that a shadow would throttle newly or for longer on one broker",
    reason="fewer have their own alerts",
    change="as many as you would raise limits for one by one",
)
DELAY_QUEUE: Final = Threshold(
    value=20.0,
    unit="connections",
    meaning="connections muted by a broker, average of 10 minutes",
    reason="a client has one or two per broker",
    change="three times the value of a busy day",
)
DELAY_QUEUE_GROWTH: Final = Threshold(
    value=1.5,
    unit="times",
    meaning="muted connections / those half an hour before",
    reason="a steady queue is in balance",
    change="higher if many clients start together",
)
TOKENS_DEBT: Final = Threshold(
    value=0.8,
    unit="ratio",
    meaning="share of the last 15 minutes with tokens below 0",
    reason="one large request recovers",
    change="lower if people wait for topics",
)
REFUSALS: Final = Threshold(
    value=0.2,
    unit="errors/s",
    meaning="refusals per second in a cluster, by request",
    reason="waiting clients are refused a few times a minute",
    change="higher for tools that create thousands of topics",
)
REFUSALS_FACTOR: Final = Threshold(
    value=3.0,
    unit="times",
    meaning="refusals / the average of the day before",
    reason="some clusters have refusals daily",
    change="lower to detect slow growth",
)
REQUEST_CAPACITY: Final = Threshold(
    value=0.6,
    unit="ratio",
    meaning="request time of clients and broker / (`num.io.threads` + `num.network.threads`)",
    reason="with the default 8 + 3 threads, handlers are 80 % busy",
    change="0.8 x `num.io.threads` / (`num.io.threads` + `num.network.threads`)",
)
EXEMPT_CAPACITY: Final = Threshold(
    value=0.4,
    unit="ratio",
    meaning="request time that no quota counts / threads of the broker",
    reason="clients get less than half of the handlers' time",
    change="higher on brokers that mostly replicate",
)
HANDLERS_IDLE: Final = shared.HANDLERS_IDLE
CONNECTION_THROTTLE: Final = Threshold(
    value=0.5,
    unit="s",
    meaning="average delay before a listener accepts a connection",
    reason="twenty in a row reach the clients' timeout of 10 s",
    change="lower if clients connect for each request",
)
IP_CONNECTION_THROTTLE: Final = Threshold(
    value=0.0,
    unit="s",
    meaning="average delay of refused connections of an address",
    reason="any delay is a refusal",
    change="raise the limit of the address instead",
)
REPLICATION_DAY: Final = Threshold(
    value=0.95,
    unit="ratio",
    meaning="share of the last day with a replication throttle",
    reason="reassignments end within a day",
    change="0.5 if they take hours",
)
HEAVY_BYTES: Final = shared.HEAVY_BYTES
HEAVY_SHARE: Final = Threshold(
    value=0.2,
    unit="ratio",
    meaning="share of the cluster's traffic of an entity without a limit",
    reason="if it doubles, all clients notice",
    change="higher with few applications",
)
TEAM_BUDGET: Final = Threshold(
    value=1.0,
    unit="ratio",
    meaning="usage of a team, average of half an hour / its budget over the cluster",
    reason="the budget is what was agreed; peaks of minutes average out",
    change="0.9 to be told before",
    above_one=True,
)
BROKER_SOLD: Final = Threshold(
    value=2.0,
    unit="ratio",
    meaning="limits of the entities on a broker / its configured capacity",
    reason="if half of the limits are used at once, nothing is left",
    change="how often you sell a broker on purpose; 1 to keep every promise",
    above_one=True,
)
SYSTEM_THROTTLED: Final = Threshold(
    value=0.1,
    unit="s",
    meaning="average throttle time of a platform program",
    reason="others wait for operators and registries",
    change="higher if their delay does not matter",
)
SOURCE_READS: Final = Threshold(
    value=0.75,
    unit="ratio",
    meaning="share of reads that succeed, 15 minutes",
    reason="restarts take four minutes",
    change="lower if brokers restart slowly",
)
READ_SECONDS: Final = Threshold(
    value=8.0,
    unit="s",
    meaning="average duration of reads, 15 minutes",
    reason="scrapes show older values",
    change="0.8 x `scrape_timeout`",
)
SAMPLES_LEFT_OUT: Final = Threshold(
    value=0.1,
    unit="ratio",
    meaning="samples missed / samples taken",
    reason="peaks are missing",
    change="lower if peaks matter",
)
LIMITS_AGE: Final = Threshold(
    value=900.0,
    unit="s",
    meaning="age of the configured limits",
    reason="thirty failed reads by default",
    change="above ten times `kafka.refresh_interval_seconds`",
)
SNAPSHOT_AGE: Final = Threshold(
    value=300.0,
    unit="s",
    meaning="age of the values shown",
    reason="scrapes show old values",
    change="above three times `collection.max_age_seconds`",
)
CERTIFICATE_LEFT: Final = Threshold(
    value=14.0,
    unit="days",
    meaning="time until a certificate expires",
    reason="rotation comes earlier: Strimzi renews 30 days before, cert-manager after two thirds",
    change="below the time that is left when your certificates are renewed",
)
DISCOVERY_FAILURES: Final = Threshold(
    value=3.0,
    unit="failures",
    meaning="failed discoveries in 15 minutes",
    reason="a broker's restart causes one or two",
    change="below the discoveries in 15 minutes",
)
SPARK_THROTTLED: Final = Threshold(
    value=0.2,
    unit="s/s",
    meaning="throttle time of a job per second",
    reason="one of five tasks only waits",
    change="higher for hundreds of tasks, lower with a deadline",
)
SPARK_RETRIES: Final = Threshold(
    value=3.0,
    unit="attempts",
    meaning="attempts repeated within 30 minutes because of a quota",
    reason="the next failure ends the job with `spark.task.maxFailures` 4",
    change="below `spark.task.maxFailures`",
)
SPARK_STALLED: Final = Threshold(
    value=600.0,
    unit="s",
    meaning="time since a query reported progress",
    reason="Spark reports after each batch and every 10 s without data",
    change="higher for real-time batches under Spark Connect",
)
SPARK_STALLED_TRIGGERS: Final = Threshold(
    value=3.0,
    unit="intervals",
    meaning="the same in intervals of its trigger",
    reason="a real-time batch lasts one",
    change="lower for hours",
)


BURN_FAST: Final = Threshold(
    value=14.4,
    unit="times",
    meaning="throttled share of an hour, and of 5 minutes / budget of the objective",
    reason="2 % of a budget of 30 days in an hour",
    change="36 for 5 %",
)
BURN: Final = Threshold(
    value=6.0,
    unit="times",
    meaning="the same of 6 hours, and of 30 minutes",
    reason="5 % of the budget in 6 hours",
    change="12 for 10 %",
)
BURN_SLOW: Final = Threshold(
    value=1.0,
    unit="times",
    meaning="the same of 3 days, and of 6 hours",
    reason="10 % of the budget in 3 days",
    change="2 for 20 %",
)


def thresholds() -> Iterator[tuple[str, Threshold]]:
    """Yield the names and thresholds, in order."""
    for name, value in globals().items():
        if isinstance(value, Threshold):
            yield name, value
