"""
A workload that meets every kind of client quota, and the rules it meets.

What request logs for the replay are recorded with.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from quotascope.quotas import QuotaSet, from_admin, quotas_yaml

from .cluster import Cluster
from .quotas import Quotas, Rule
from .traffic import Traffic, together

RULES: Final[tuple[Rule, ...]] = (
    ({"user": "alice"}, {"producer_byte_rate": 60_000.0}),
    ({"user": "alice", "client-id": "app1"}, {"producer_byte_rate": 25_000.0}),
    ({"user": "carol", "client-id": None}, {"consumer_byte_rate": 80_000.0}),
    ({"client-id": "prober"}, {"request_percentage": 1.0}),
    ({"user": "svc:team a"}, {"request_percentage": 2.5, "producer_byte_rate": 1e6}),
    ({"user": "bob"}, {"controller_mutation_rate": 2.0}),
)
"""Rules of all kinds, at several levels, some of which share a sensor."""
OTHER_RULES: Final[tuple[Rule, ...]] = (
    ({"user": "alice"}, {"producer_byte_rate": 120_000.0}),
    ({"user": "alice", "client-id": "app1"}, {"producer_byte_rate": 40_000.0}),
    ({"user": "carol", "client-id": None}, {"consumer_byte_rate": 160_000.0}),
    ({"client-id": "prober"}, {"request_percentage": 2.0}),
    ({"user": "svc:team a"}, {"request_percentage": 5.0, "producer_byte_rate": 1e6}),
    ({"user": "bob"}, {"controller_mutation_rate": 4.0}),
)
"""The same entities with other limits."""
_RECORDS: Final = 1300
"""Records in the topic that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the clients of `record_work`."""

    produced: float = 60_000.0
    fetched: float = 80_000.0
    percent: float = 2.0
    mutated: float = 2.0

    def rules(self, run: str) -> tuple[Rule, ...]:
        """Return the rules; each run has clients, and so sensors, of its own."""
        return (
            ({"user": "alice", "client-id": f"writer-{run}"}, {"producer_byte_rate": self.produced}),
            ({"user": "carol", "client-id": f"reader-{run}"}, {"consumer_byte_rate": self.fetched}),
            ({"user": "mallory", "client-id": f"prober-{run}"}, {"request_percentage": self.percent}),
            ({"user": "bob", "client-id": f"admin-{run}"}, {"controller_mutation_rate": self.mutated}),
        )


LOWER: Final = Limits(produced=45_000.0, fetched=60_000.0, percent=1.0, mutated=1.5)
"""Lower limits, as a candidate may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A request log and the rules that were in force."""

    log: bytes
    rules: tuple[Rule, ...]

    def rules_yaml(self) -> str:
        """Return the rules as a file of quotas, which `make replay-check` reads."""
        return quotas_yaml(QuotaSet({from_admin(entity): values for entity, values in self.rules}))


def record(cluster: Cluster, rules: tuple[Rule, ...] = RULES, seconds: float = 15) -> Recording:
    """Return the first broker's log while clients run into rules for some time."""
    return _recorded(cluster, rules, lambda topic: _run(cluster, topic, seconds))


def record_all(cluster: Cluster, rules: tuple[Rule, ...] = RULES, seconds: float = 15) -> list[Recording]:
    """
    Return each broker's log while clients run into rules for some time.

    Each client talks to the broker that leads its topic, or to the controller.
    """
    starts = [broker.request_log.stat().st_size for broker in cluster.brokers]
    first_recording = _recorded(cluster, rules, lambda topic: _run(cluster, topic, seconds, partitions=3))
    logs = [broker.request_log.read_bytes()[start:] for broker, start in zip(cluster.brokers, starts, strict=True)]
    return [Recording(log=log, rules=first_recording.rules) for log in logs]


def record_work(cluster: Cluster, limits: Limits, run: str) -> Recording:
    """
    Return the first broker's log of the same work under some limits.

    The work takes as long as the limits make it.
    """
    rules = limits.rules(run)
    return _recorded(cluster, rules, lambda topic: _work(cluster, topic, run))


def record_beyond_a_month(cluster: Cluster) -> Recording:
    """
    Return the first broker's log while 3 MB meet a limit of 1 B/s.

    Over three connections, since the first request mutes its own for days.
    """
    rules: tuple[Rule, ...] = (({"user": "alice", "client-id": "heavy"}, {"producer_byte_rate": 1.0}),)

    def run(topic: str) -> None:
        traffic = Traffic(cluster)
        for _ in range(3):
            traffic.produce_one("alice", "heavy", topic, 990_000)

    return _recorded(cluster, rules, run)


def _recorded(cluster: Cluster, rules: tuple[Rule, ...], run: Callable[[str], None]) -> Recording:
    """Set rules, fill a topic with small batches, run, take the rules away."""
    log = cluster.brokers[0].request_log
    start = log.stat().st_size
    with closing(Quotas(cluster.connection())) as quotas:
        quotas.set(*rules)
        traffic = Traffic(cluster)
        topic = traffic.topic()
        traffic.produce_all("admin", "filler", topic, _RECORDS)
        run(topic)
        quotas.clear()
    return Recording(log=log.read_bytes()[start:], rules=rules)


def _work(cluster: Cluster, topic: str, run: str) -> None:
    """
    Run the work so that the log has all of it and nothing else.

    A request that a client sent ahead when it ended would be replayed as work.
    """
    traffic = Traffic(cluster)
    together(
        lambda: traffic.produce_all("alice", f"writer-{run}", traffic.topic(), 900),
        lambda: traffic.read_all("carol", f"reader-{run}", topic, _RECORDS),
        lambda: traffic.request("mallory", f"prober-{run}", 60, max_requests=350),
        lambda: traffic.mutate_all("bob", f"admin-{run}", (15, 15, 9, 9)),
    )


def _run(cluster: Cluster, topic: str, seconds: float, partitions: int = 1) -> None:
    """Run the workload; a multiple of the partitions overdraws a bucket on a slow machine, too."""
    traffic = Traffic(cluster)
    together(
        lambda: traffic.produce("alice", "app1", topic, seconds, pause=0.005),
        lambda: traffic.produce("alice", "app2", topic, seconds, pause=0.005),
        lambda: traffic.produce("svc:team a", "batch", topic, seconds, pause=0.002),
        lambda: traffic.fetch("carol", "reader", topic, seconds),
        lambda: traffic.request("mallory", "prober", seconds),
        lambda: _mutate(traffic, "topic-admin", seconds, partitions),
    )


def _mutate(traffic: Traffic, client_id: str, seconds: float, times: int) -> None:
    """Create more partitions than a bucket holds, by clients that are refused and by an old one that is delayed."""
    stop = threading.Event()
    sizes: Mapping[bool, int] = {True: 15, False: 9}
    for strict in (True, True, True, False, False):
        traffic.mutate("bob", client_id, sizes[strict] * times, strict=strict)
        stop.wait(seconds / 10)
