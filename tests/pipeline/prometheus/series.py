"""Series of a Prometheus in six hours of the past: loads, gaps, pairs of servers, dialects, an exporter, throttles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cache

from tests.integration.backfilled import HOUR_S, Backfill
from tests.pipeline.prometheus.loads import HOURS, LOADS, scraped
from tests.pipeline.recommend.rows import MONDAY

INTERVALS = (5, 10, 15, 30, 60)
SEEDS = (1, 2)
USAGE, THROTTLE, START = (
    f"kafka_server_{name}" for name in ("Produce_byte_rate", "Produce_throttle_time", "app_info_StartTimeMs")
)
Samples = list[tuple[float, float]]


@cache
def begin_s() -> float:
    """Return the hour at which all samples begin, so that they end at the last full one; the same for all tests."""
    return time.time() // HOUR_S * HOUR_S - HOURS * HOUR_S


def samples_of(load: str, seed: int, every_s: int, begin: float) -> Samples:
    """Return the scrapes of a load, at a phase of its own."""
    phase_s = 7 * seed % every_s
    return [(begin + at - MONDAY / 1_000, value) for at, value in scraped(load, seed, every_s, phase_s)]


def client(job: str, user: str, samples: Samples, instance: str = "broker-1:9404", **labels: str) -> Backfill:
    """Return the produce rates of a user, as jmx_exporter without rules names them."""
    return Backfill(USAGE, {"job": job, "instance": instance, "user": user, **labels}, samples)


def node(job: str, samples: Samples, node_id: str = "1", instance: str = "broker-1:9404", **labels: str) -> Backfill:
    """Return the start of a node, which has its id."""
    starts = [(at, 1.7e12) for at, _ in samples]
    return Backfill(START, {"job": job, "instance": instance, "id": node_id, **labels}, starts)


def flat(begin: float, value: float = 1e6, hours: float = HOURS, skipped: tuple[float, float] = (0, 0)) -> Samples:
    """Return samples of one value each 10 s, except for a part of the time."""
    times = (begin + at for at in range(5, round(hours * HOUR_S), 10))
    return [(at, value) for at in times if not skipped[0] <= at - begin < skipped[1]]


def the_loads(begin: float) -> Iterator[Backfill]:
    """Yield all loads at all intervals, a job for each interval."""
    for every_s in INTERVALS:
        job = f"every-{every_s}"
        for load in LOADS:
            for seed in SEEDS:
                yield client(job, f"{load} {seed}".replace(" ", "%20"), samples_of(load, seed, every_s, begin))
        yield node(job, [(begin + at, 0.0) for at in range(1, HOURS * HOUR_S, every_s)])


def the_cases(begin: float) -> Iterator[Backfill]:
    """Yield a gap, a restart, a pair of servers, three brokers, two clusters, and a rule that drops labels."""
    gap = flat(begin, skipped=(2 * HOUR_S, 3 * HOUR_S))
    yield from (client("gap", "alice", gap), node("gap", gap))
    # a restart: the rate begins at 0, and the node with another version in its labels
    before, after = flat(begin, hours=3), [(at + 3 * HOUR_S + 60, value) for at, value in flat(begin, hours=2.9)]
    yield from (client("restart", "alice", before, pod="kafka-a"), client("restart", "alice", after, pod="kafka-b"))
    yield from (node("restart", before, pod="kafka-a"), node("restart", after, pod="kafka-b"))
    for replica in ("a", "b"):
        half = flat(begin, skipped=(0, HOUR_S) if replica == "a" else (4 * HOUR_S, 5 * HOUR_S))
        yield client("pair", "alice", half, prometheus_replica=replica)
        yield node("pair", half, prometheus_replica=replica)
    for number in (1, 2, 3):
        instance = f"broker-{number}:9404"
        yield client("three", "alice", flat(begin, 1e6 * number), instance)
        yield node("three", flat(begin), str(number), instance)
    for cluster in ("east", "west"):
        instance = f"{cluster}-1:9404"
        yield client("two", "alice", flat(begin), instance, cluster=cluster)
        yield node("two", flat(begin), instance=instance, cluster=cluster)
    for user in ("alice", "bob"):
        # a rule wrote both under other labels than Kafka's, and dropped those
        yield client("dropped", "", flat(begin), broker_rack=user)
    yield node("dropped", flat(begin))


def the_dialects(begin: float) -> Iterator[Backfill]:
    """Yield one load in the spelling of each dialect, a job for each."""
    samples = samples_of("lognormal", 1, 10, begin)
    spellings: Mapping[str, tuple[str, Mapping[str, str]]] = {
        "jmx_default": (USAGE, {"user": "alice", "client_id": "app"}),
        "kafka_2_0_0": ("kafka_server_quota_byte_rate", {"resource": "Produce", "user": "alice", "clientId": "app"}),
        "confluent": ("kafka_server_produce_byte_rate", {"user": "alice", "client_id": "app"}),
        "quotascope_rules": ("kafka_quota_produce_bytes_per_second", {"user": "alice", "client_id": "app"}),
    }
    for job, (name, labels) in spellings.items():
        target = {"job": job, "instance": "broker-1:9404"}
        yield Backfill(name, {**target, **labels}, samples)
        yield Backfill(
            "kafka_controller_kafkacontroller_activecontrollercount", target, [(at, 1.0) for at, _ in samples]
        )
    yield Backfill(
        "kafka_quota_broker_start_time_seconds",
        {"job": "quotascope_rules", "instance": "broker-1:9404", "broker": "1"},
        [(at, 1.7e9) for at, _ in samples],
    )


def the_exporter(begin: float) -> Iterator[Backfill]:
    """Yield the families of an exporter of ours, with throttles, a limit and its rule."""
    target, entity = {"job": "quotascope", "instance": "exporter:9749"}, {"user": "alice", "client_id": ""}
    samples = samples_of("lognormal", 1, 10, begin)
    throttled = [(at, 0.5 if (at - begin) % HOUR_S < 600 else 0.0) for at, _ in samples]
    now = time.time()
    extended = [(at, 3e6) for at in range(int(begin), int(now), 10)]
    yield Backfill("quotascope_source_up", {**target, "source": "broker-1"}, extended)
    yield Backfill("kafka_quota_produce_bytes_per_second", {**target, **entity, "broker": "1"}, samples)
    of_produce = {**target, **entity, "quota_type": "produce"}
    yield Backfill("kafka_quota_throttle_time_seconds", {**of_produce, "broker": "1"}, throttled)
    yield Backfill("kafka_quota_produce_limit_bytes_per_second", {**target, **entity}, extended)
    rule = {"rule": "6 user <default>", "level": "6", "rule_user": "<default>", "rule_client_id": ""}
    yield Backfill("kafka_quota_rule_info", {**of_produce, **rule}, [(at, 1.0) for at, _ in extended])


def the_throttles(begin: float) -> Iterator[Backfill]:
    """Yield two throttle episodes of a user on a broker, two minutes apart, and one of another client."""
    steady = flat(begin)
    yield client("throttled", "alice", steady)
    yield node("throttled", steady)
    spans = ((HOUR_S, HOUR_S + 300), (HOUR_S + 420, HOUR_S + 600))
    inside = [(at, 250.0 if any(since <= at - begin < until for since, until in spans) else 0.0) for at, _ in steady]
    labels = {"job": "throttled", "instance": "broker-1:9404", "user": "alice"}
    yield Backfill(THROTTLE, labels, inside)


def the_pairs(begin: float) -> Iterator[Backfill]:
    """Yield two clients of a user that are measured apart, and a user whose clients are measured together."""
    yield client("pairs", "alice", flat(begin, 1e6), client_id="a")
    yield client("pairs", "alice", flat(begin, 2e6), client_id="b")
    yield client("pairs", "bob", flat(begin, 5e5))
    yield node("pairs", flat(begin))
