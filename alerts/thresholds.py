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
    meaning="average throttle of an entity over the last minute",
    reason="A throttle is (rate - limit) / limit x window of 10 to 11 s, so half a second means that the client wants about 5 % more than it may.",
    change="Lower it to 0.1 where clients answer people; raise it where batch jobs are meant to run at their limit.",
)
PERSISTENT: Final = Threshold(
    value=0.5,
    unit="ratio",
    meaning="average utilisation over 15 minutes, below which throttles are single bursts",
    reason="Who is held back all the time uses about its whole limit; who is below half of it sends in bursts, and a higher limit would only help for seconds.",
    change="Lower it when bursts hurt, too.",
)
NEAR_LIMIT: Final = Threshold(
    value=0.9,
    unit="ratio",
    meaning="average utilisation of an entity over 30 minutes on its busiest broker",
    reason="The last tenth is what ordinary variation needs: from there on the next peak is throttled.",
    change="Lower it to 0.8 when raising a limit takes you days; raise it where clients regulate themselves.",
)
PREDICTION: Final = Threshold(
    value=0.6,
    unit="ratio",
    meaning="utilisation from which on a trend is followed",
    reason="A trend of small numbers is noise: a client at 10 % that doubled is not about to reach its limit.",
    change="Lower it for clients that grow within hours.",
)
CLIENT_TIMEOUT: Final = Threshold(
    value=30.0,
    unit="s",
    meaning="average throttle of an entity over the last minute",
    reason="request.timeout.ms of Java clients is 30 s by default; beyond it, those that do not know of throttles drop the connection, and producers lose records after delivery.timeout.ms (2 minutes).",
    change="Set it to the smallest request timeout that your clients use.",
)
SPIKE: Final = Threshold(
    value=25.0,
    unit="s/s",
    meaning="throttle time told to all clients of a cluster, per second",
    reason="It is the number of connections that do nothing but wait: fewer than 25 is one or two clients on a few brokers, not a cluster in trouble.",
    change="Set it to about the number of connections of your three largest applications.",
)
SPIKE_FACTOR: Final = Threshold(
    value=4.0,
    unit="times",
    meaning="throttle time of a cluster, compared with the highest of three: the average of the day before, and the peaks of these hours yesterday and a week ago",
    reason="Nightly jobs and Monday mornings are in the comparison, so four times as much is new.",
    change="Lower it to 2 where load is even; raise it where it swings.",
)
SPIKE_ENTITIES: Final = Threshold(
    value=5.0,
    unit="entities",
    meaning="entities throttled at the same time, below which a spike wakes nobody",
    reason="What hits fewer is the matter of these clients, and has its own alerts.",
    change="Set it to 1 where a single client is worth waking up for.",
)
MANY_ENTITIES: Final = Threshold(
    value=20.0,
    unit="entities",
    meaning="entities throttled at the same time",
    reason="Clients do not misbehave by the dozen: a limit or a broker changed under them.",
    change="Set it to about a tenth of the entities that you usually see, but not below 10.",
)
MANY_ENTITIES_FACTOR: Final = Threshold(
    value=3.0,
    unit="times",
    meaning="entities throttled at the same time, compared as in the throttle spike",
    reason="Where dozens are throttled every day, dozens are no reason to wake up.",
    change="As the factor of the throttle spike.",
)
DELAY_QUEUE: Final = Threshold(
    value=20.0,
    unit="connections",
    meaning="connections that a broker has muted, on average over 10 minutes",
    reason="A client has a connection or two to each broker: twenty are many clients, or one that opens ever more.",
    change="Set it to three times what the dashboard of the brokers shows on a busy day.",
)
DELAY_QUEUE_GROWTH: Final = Threshold(
    value=1.5,
    unit="times",
    meaning="connections that a broker has muted, compared with half an hour before",
    reason="A queue that stays as it is has found its balance; half as many again have not.",
    change="Raise it where many clients start at the same time.",
)
MUTATION_THROTTLED: Final = Threshold(
    value=5.0,
    unit="s",
    meaning="average wait for the controller's mutation quota over the last minute",
    reason="Who creates topics is told to wait for seconds: that is how this quota works, and Admin clients do. Five seconds at a time, for a quarter of an hour, is more work than the quota is made for.",
    change="Raise it for tools that may take all night.",
)
TOKENS_DEBT: Final = Threshold(
    value=0.8,
    unit="ratio",
    meaning="part of the last 15 minutes in which the token bucket was in debt",
    reason="One large request overdraws the bucket on purpose, and it recovers; who is in debt four fifths of the time asks for more than the quota gives.",
    change="Lower it where topics are created while people wait.",
)
REJECTIONS: Final = Threshold(
    value=0.2,
    unit="errors/s",
    meaning="answers with THROTTLING_QUOTA_EXCEEDED per second in a cluster, by request",
    reason="A client that waits as it is told is refused a few times a minute; KRaft counts each twice. More is a client that does not wait.",
    change="Raise it where a tool creates topics by the thousand.",
)
REJECTIONS_FACTOR: Final = Threshold(
    value=3.0,
    unit="times",
    meaning="refusals compared with the average of the day before",
    reason="Where refusals are part of every day, only more of them are news.",
    change="Lower it to hear of slow growth.",
)
REQUEST_CAPACITY: Final = Threshold(
    value=0.6,
    unit="ratio",
    meaning="request time of all clients and the broker itself, of its num.io.threads + num.network.threads",
    reason="With the default of 8 + 3 threads, request handlers that never rest are at 0.73 already; at 0.6 they are busy for four fifths of the time, and requests begin to queue.",
    change="Four fifths of num.io.threads / (num.io.threads + num.network.threads).",
)
EXEMPT_CAPACITY: Final = Threshold(
    value=0.4,
    unit="ratio",
    meaning="request time that no quota counts, of the broker's threads",
    reason="No quota holds it back, so that all clients share what is left: with the default threads less than half of the request handlers' time.",
    change="Raise it on brokers that mostly replicate.",
)
CONNECTION_THROTTLE: Final = Threshold(
    value=0.5,
    unit="s",
    meaning="average wait of a listener before it takes the next connection",
    reason="Everybody who connects waits, one after the other: at half a second, twenty in a row reach the 10 s that clients wait for a connection.",
    change="Lower it where clients connect anew for each request.",
)
IP_CONNECTION_THROTTLE: Final = Threshold(
    value=0.0,
    unit="s",
    meaning="average delay with which connections of single addresses are refused",
    reason="Any delay is a refused connection.",
    change="Leave it: raise the limit of the address instead.",
)
REPLICATION_DAY: Final = Threshold(
    value=0.95,
    unit="ratio",
    meaning="part of the last day with a replication throttle",
    reason="A reassignment is over within a day; a few gaps of the exporter must not hide that the throttle is not.",
    change="Lower it to 0.5 where reassignments take hours.",
)
HEAVY_BYTES: Final = Threshold(
    value=10_000_000.0,
    unit="bytes/s",
    meaning="traffic of an entity, or of a cluster, from which on shares are looked at",
    reason="A tenth of what a broker with a 1 Gbit/s network carries: below it nobody else is in danger.",
    change="Set it to a tenth of what your brokers' network or disks carry.",
)
HEAVY_SHARE: Final = Threshold(
    value=0.2,
    unit="ratio",
    meaning="part of the cluster's measured traffic that one entity without a limit has",
    reason="With a fifth of all traffic, doubling it is felt by everybody.",
    change="Raise it in clusters with few applications.",
)
PROXY_SHARE: Final = Threshold(
    value=0.8,
    unit="ratio",
    meaning="part of the cluster's measured traffic that one user has",
    reason="Where many users are known and one has four fifths of the traffic, it most likely stands for others: a proxy, or clients that do not log in.",
    change="Raise it where one application really is most of the load.",
)
PROXY_USERS: Final = Threshold(
    value=3.0,
    unit="users",
    meaning="users with traffic, from which on one that has most of it is remarkable",
    reason="With one or two users, one of them always has most.",
    change="Raise it in large clusters.",
)
SYSTEM_THROTTLED: Final = Threshold(
    value=0.1,
    unit="s",
    meaning="average throttle of one of the platform's own programs over the last minute",
    reason="Operators and registries answer others: a tenth of a second on each request adds up, and nobody decided that they should wait.",
    change="Raise it when their slowness bothers nobody.",
)
LIMITS_AGE: Final = Threshold(
    value=900.0,
    unit="s",
    meaning="age of the configured limits that the exporter joins",
    reason="They are read every half minute by default: 15 minutes are thirty failures in a row.",
    change="Keep it above ten times kafka.refresh_interval_seconds.",
)
SNAPSHOT_AGE: Final = Threshold(
    value=300.0,
    unit="s",
    meaning="age of the numbers that the exporter shows",
    reason="Each scrape may collect anew: five minutes are several scrapes that showed old numbers.",
    change="Keep it above three times collection.max_age_seconds.",
)
DISCOVERY_FAILURES: Final = Threshold(
    value=3.0,
    unit="failures",
    meaning="failed looks of a discovery within 15 minutes",
    reason="One or two fall into the restart of a broker.",
    change="Keep it below the number of looks in 15 minutes.",
)
SPARK_THROTTLED: Final = Threshold(
    value=0.2,
    unit="s/s",
    meaning="throttle time told to the Kafka clients of a job, per second",
    reason="Of five tasks that read or write, one does nothing but wait.",
    change="Raise it for jobs with hundreds of tasks, set it lower for those with a deadline.",
)
SPARK_RETRIES: Final = Threshold(
    value=3.0,
    unit="attempts",
    meaning="task attempts repeated within 30 minutes because of a quota",
    reason="spark.task.maxFailures is 4: a task that is repeated three times is one failure away from the end of its job.",
    change="Keep it below spark.task.maxFailures.",
)
SPARK_STALLED: Final = Threshold(
    value=600.0,
    unit="s",
    meaning="time since a streaming query last told its progress",
    reason="Spark tells progress after each batch and every 10 s without data; 10 minutes are far beyond most triggers.",
    change="Keep it above three times the longest trigger interval.",
)


def thresholds() -> Iterator[tuple[str, Threshold]]:
    """All of them with their names, in order."""
    for name, value in globals().items():
        if isinstance(value, Threshold):
            yield name, value
