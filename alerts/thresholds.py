"""
Every threshold of the alerts, once: its value, why that, and when to change it.

The dashboards draw the same numbers, ``docs/alerts.md`` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A number that decides whether an alert fires."""

    value: float
    unit: str
    """s, bytes/s, ratio, and so on."""
    meaning: str
    """What is compared with it."""
    reason: str
    """Why this value."""
    change: str
    """When to choose another one, and which way."""


THROTTLED: Final = Threshold(
    value=0.5,
    unit="s",
    meaning="average throttle time of an entity in the last minute",
    reason="Half a second means that the client wants about 5 % more than its limit.",
    change="Lower it to 0.1 for interactive clients; raise it for batch jobs.",
)
PERSISTENT: Final = Threshold(
    value=0.5,
    unit="ratio",
    meaning="average utilization over 15 minutes, below which throttles are bursts",
    reason="A client that is throttled all the time uses about its whole limit.",
    change="Lower it if bursts matter, too.",
)
NEAR_LIMIT: Final = Threshold(
    value=0.9,
    unit="ratio",
    meaning="average utilization of an entity over 30 minutes on its busiest broker",
    reason="Ordinary variation needs the last tenth.",
    change="Lower it to 0.8 if raising a limit takes days.",
)
PREDICTION: Final = Threshold(
    value=0.6,
    unit="ratio",
    meaning="utilization above which a trend is followed",
    reason="Trends of small values are noise.",
    change="Lower it for clients that grow within hours.",
)
CLIENT_TIMEOUT: Final = Threshold(
    value=30.0,
    unit="s",
    meaning="average throttle time of an entity in the last minute",
    reason="This is the default request.timeout.ms of Java clients. Beyond delivery.timeout.ms (2 minutes) producers lose records.",
    change="Set it to the shortest request timeout of your clients.",
)
SPIKE: Final = Threshold(
    value=25.0,
    unit="s/s",
    meaning="throttle time of all clients of a cluster, per second",
    reason="25 s/s are 25 connections that only wait.",
    change="Set it to the number of connections of your three largest applications.",
)
SPIKE_FACTOR: Final = Threshold(
    value=4.0,
    unit="times",
    meaning="throttle time of a cluster, compared with its baseline",
    reason="Nightly jobs and Monday mornings are part of the baseline.",
    change="Lower it to 2 for even load; raise it for load that swings.",
)
SPIKE_ENTITIES: Final = Threshold(
    value=5.0,
    unit="entities",
    meaning="entities throttled at the same time, below which a spike is not critical",
    reason="Fewer entities have their own alerts.",
    change="Set it to 1 if a single client is critical.",
)
MANY_ENTITIES: Final = Threshold(
    value=20.0,
    unit="entities",
    meaning="entities throttled at the same time",
    reason="That many at once suggest a changed limit or broker.",
    change="Set it to a tenth of the usual number of entities, at least 10.",
)
MANY_ENTITIES_FACTOR: Final = Threshold(
    value=3.0,
    unit="times",
    meaning="entities throttled at the same time, compared with their baseline",
    reason="Some clusters throttle dozens every day.",
    change="See SPIKE_FACTOR.",
)
DELAY_QUEUE: Final = Threshold(
    value=20.0,
    unit="connections",
    meaning="connections that a broker has muted, average over 10 minutes",
    reason="A client has one or two connections to each broker.",
    change="Set it to three times the value of a busy day.",
)
DELAY_QUEUE_GROWTH: Final = Threshold(
    value=1.5,
    unit="times",
    meaning="muted connections, compared with half an hour before",
    reason="A steady queue has found its balance.",
    change="Raise it if many clients start at the same time.",
)
MUTATION_THROTTLED: Final = Threshold(
    value=5.0,
    unit="s",
    meaning="average throttle time of the controller mutation quota in the last minute",
    reason="Waits of seconds are normal under this quota.",
    change="Raise it for tools that may run all night.",
)
TOKENS_DEBT: Final = Threshold(
    value=0.8,
    unit="ratio",
    meaning="share of the last 15 minutes with a token bucket in debt",
    reason="The bucket recovers from a single large request.",
    change="Lower it if people wait for topics.",
)
REJECTIONS: Final = Threshold(
    value=0.2,
    unit="errors/s",
    meaning="refusals (THROTTLING_QUOTA_EXCEEDED) per second in a cluster, by request",
    reason="Clients that wait are refused a few times a minute; KRaft counts each twice.",
    change="Raise it for tools that create topics by the thousand.",
)
REJECTIONS_FACTOR: Final = Threshold(
    value=3.0,
    unit="times",
    meaning="refusals compared with the average of the day before",
    reason="Some clusters have refusals every day.",
    change="Lower it to detect slow growth.",
)
REQUEST_CAPACITY: Final = Threshold(
    value=0.6,
    unit="ratio",
    meaning="request time of clients and broker, as a share of num.io.threads + num.network.threads",
    reason="With the default 8 + 3 threads, handlers are 80 % busy at 0.6.",
    change="Set it to 0.8 x num.io.threads / (num.io.threads + num.network.threads).",
)
EXEMPT_CAPACITY: Final = Threshold(
    value=0.4,
    unit="ratio",
    meaning="request time that no quota counts, as a share of the broker's threads",
    reason="Beyond it, clients get less than half of the request handlers' time.",
    change="Raise it on brokers that mostly replicate.",
)
CONNECTION_THROTTLE: Final = Threshold(
    value=0.5,
    unit="s",
    meaning="average wait of a listener before it accepts the next connection",
    reason="Twenty connections in a row reach the clients' timeout of 10 s.",
    change="Lower it if clients connect for each request.",
)
IP_CONNECTION_THROTTLE: Final = Threshold(
    value=0.0,
    unit="s",
    meaning="average delay of refused connections of single addresses",
    reason="Any delay is a refused connection.",
    change="Raise the limit of the address instead.",
)
REPLICATION_DAY: Final = Threshold(
    value=0.95,
    unit="ratio",
    meaning="share of the last day with a replication throttle",
    reason="Reassignments end within a day; gaps are tolerated.",
    change="Lower it to 0.5 if reassignments take hours.",
)
HEAVY_BYTES: Final = Threshold(
    value=10_000_000.0,
    unit="bytes/s",
    meaning="traffic of an entity or cluster, above which shares are compared",
    reason="This is about a tenth of a 1 Gbit/s network.",
    change="Set it to a tenth of your brokers' network or disk rate.",
)
HEAVY_SHARE: Final = Threshold(
    value=0.2,
    unit="ratio",
    meaning="share of the cluster's measured traffic of one entity without a limit",
    reason="If a fifth of the traffic doubles, all clients notice.",
    change="Raise it in clusters with few applications.",
)
PROXY_SHARE: Final = Threshold(
    value=0.8,
    unit="ratio",
    meaning="share of the cluster's measured traffic of one user",
    reason="Such a user is probably a proxy, or clients without authentication.",
    change="Raise it if one application is most of the load.",
)
PROXY_USERS: Final = Threshold(
    value=3.0,
    unit="users",
    meaning="users with traffic, from which on shares are compared",
    reason="Of one or two users, one always has most of the traffic.",
    change="Raise it in large clusters.",
)
SYSTEM_THROTTLED: Final = Threshold(
    value=0.1,
    unit="s",
    meaning="average throttle time of a platform program in the last minute",
    reason="Other clients wait for operators and registries.",
    change="Raise it if their delay does not matter.",
)
LIMITS_AGE: Final = Threshold(
    value=900.0,
    unit="s",
    meaning="age of the configured limits",
    reason="This is thirty failed reads in a row at the default interval.",
    change="Keep it above ten times kafka.refresh_interval_seconds.",
)
SNAPSHOT_AGE: Final = Threshold(
    value=300.0,
    unit="s",
    meaning="age of the values that the exporter shows",
    reason="After five minutes, several scrapes have shown old values.",
    change="Keep it above three times collection.max_age_seconds.",
)
DISCOVERY_FAILURES: Final = Threshold(
    value=3.0,
    unit="failures",
    meaning="failed discoveries within 15 minutes",
    reason="A broker's restart causes one or two.",
    change="Keep it below the number of discoveries in 15 minutes.",
)
SPARK_THROTTLED: Final = Threshold(
    value=0.2,
    unit="s/s",
    meaning="throttle time of the Kafka clients of a job, per second",
    reason="One of five tasks with Kafka clients only waits.",
    change="Raise it for jobs with hundreds of tasks; lower it for jobs with a deadline.",
)
SPARK_RETRIES: Final = Threshold(
    value=3.0,
    unit="attempts",
    meaning="task attempts repeated within 30 minutes because of a quota",
    reason="With spark.task.maxFailures of 4, the next failure ends the job.",
    change="Keep it below spark.task.maxFailures.",
)
SPARK_STALLED: Final = Threshold(
    value=600.0,
    unit="s",
    meaning="time since a streaming query last reported progress",
    reason="Spark reports after each batch and every 10 s without data.",
    change="Keep it above three times the longest trigger interval.",
)


def thresholds() -> Iterator[tuple[str, Threshold]]:
    """All of them with their names, in order."""
    for name, value in globals().items():
        if isinstance(value, Threshold):
            yield name, value
