"""A simulated cluster by seed, and what the exporter reads of it: agents, the Admin API, a discovery, a receiver."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf, nan
from random import Random
from typing import Final

from quotascope.exporter.config import SourceConfig
from quotascope.exporter.coverage import Coverage
from quotascope.exporter.discovery.target import FoundNodes, NodeTarget
from quotascope.exporter.errors import DiscoveryError, LimitsDenied, LimitsError, SourceDenied, SourceUnreachable
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.limits.model import SETTINGS_OF
from quotascope.exporter.mapping import Bean, BeanColumn, BeanLayout, BeanTable
from quotascope.exporter.otlp.push import PushResult
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable
from quotascope.metrics.kafka.sanitizer import sanitize

EPOCH: Final = 1_795_251_780.0
"""Unix time in seconds at which a simulation begins."""
USERS: Final = ("alice", "bob", "svc:team a", "é😀", "")
CLIENTS: Final = ("app", "x=1,y", "<default>", "")
REQUESTS: Final = ("Produce", "Fetch", "CreateTopics")
THROTTLED: Final = "throttled"
ERRORS: Final = "errors"
REFUSED: Final = "CreateTopics"
"""Request that mutation quotas refuse."""
SLIPS: Final = 0.01
"""Share of the answers in which the counters of the node are far too high."""
MUTATION: Final = QuotaType.CONTROLLER_MUTATION
COMPLETE: Final = Coverage(complete=True, queues=frozenset(QuotaType), connections=True)

Client = tuple[QuotaType, str, str]
"""A quota type, and the user and client-id that a broker measures, empty for none."""


@dataclass(slots=True)
class Use:
    """Activity of a client."""

    busy: float
    """Of its limit, or of 1,000 where it has none."""
    throttled: bool
    gone: float = inf
    """When its bean leaves the broker."""


@dataclass(slots=True)
class Broker:
    """A node of the simulated cluster."""

    node_id: str
    started_at: float
    release: KafkaRelease
    used: dict[Client, Use] = field(default_factory=dict)
    requests: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Throttled requests and their milliseconds since the start, by request."""
    errors: int = 0
    callback: bool = False
    down: bool = False


class Cluster:
    """
    Brokers, their rules and clients.

    Args:
        random: Decides what happens.
        clock: Unix time in seconds.
        slips: Decides in which answers counters are far too high.

    """

    def __init__(self, random: Random, clock: Callable[[], float], slips: Random) -> None:
        self.random, self.clock, self.slips = random, clock, slips
        self.slip_share = SLIPS
        self.cluster_id = "first"
        self._ids = count(1)
        self.answers = count()
        self.rules: dict[QuotaType, dict[QuotaEntity, float]] = {kind: {} for kind in QuotaType}
        self.connection_limits: dict[str, float] = {}
        self.brokers: list[Broker] = []
        for _ in range(random.choice((1, 2, 2, 3, 4))):
            self.add()
        self.leader = self.brokers[0].node_id
        for _ in range(random.randrange(12)):
            self.change_rule()
        for _ in range(random.randrange(24)):
            self.use()

    def add(self) -> Broker:
        """Let another node join."""
        release = self.random.choice((KafkaRelease(3, 9), KafkaRelease(4, 1), KafkaRelease(4, 2)))
        broker = Broker(str(next(self._ids)), self.clock() + self.random.random(), release)
        self.brokers.append(broker)
        return broker

    def change_rule(self) -> None:
        """Set or remove one rule."""
        random = self.random
        kind = random.choice([*QuotaType])
        user = random.choice((None, DEFAULT, *USERS[:4]))
        client_id = (
            random.choice((None, DEFAULT, *CLIENTS[:2])) if user is not None else random.choice(("app", DEFAULT))
        )
        entity, rules = QuotaEntity(user, client_id), self.rules[kind]
        if entity in rules and random.random() < 0.5:
            del rules[entity]
        else:
            rules[entity] = random.choice((1.0, 50.0, 1_000.0, random.uniform(1, 1e6), 1e18))
        for broker in self.brokers:
            for measured, use in broker.used.items():
                if measured[0] is kind and not self.table(kind).would_record(*measured[1:]):
                    use.gone = min(use.gone, self.clock() + random.uniform(0, 300))

    def table(self, kind: QuotaType) -> RuleTable:
        return QuotaRules(self.rules[kind]).snapshot()

    def use(self) -> None:
        """Let a client send requests, or do so otherwise than before."""
        random = self.random
        kind, broker = random.choice([*QuotaType]), random.choice(self.brokers)
        table = self.table(kind)
        if not table.enabled:
            return
        tags = table.metric_tags(random.choice(USERS[:4]), random.choice(CLIENTS))
        busy = random.choice((0.0, 0.3, 0.99, 1.0, 1.7))
        broker.used[kind, *tags] = Use(busy, throttled=busy >= 0.99 and random.random() < 0.8)

    def crowd(self) -> None:
        """Let very many clients come to one broker."""
        broker, table = self.random.choice(self.brokers), self.table(QuotaType.PRODUCE)
        if table.enabled:
            for second in range(self.random.randrange(40, 150)):
                tags = table.metric_tags(f"user-{second}", "many")
                broker.used[QuotaType.PRODUCE, *tags] = Use(self.random.random(), throttled=self.random.random() < 0.1)

    def restart(self, broker: Broker) -> None:
        """Start a node again: its counters begin at zero, and its beans come with its clients."""
        broker.started_at = self.clock() + self.random.random()
        broker.used = {client: use for client, use in broker.used.items() if self.random.random() < 0.6}
        broker.requests, broker.errors = {}, 0

    def serve(self, broker: Broker) -> None:
        """Let some requests be throttled."""
        for request in REQUESTS:
            if self.random.random() < 0.4:
                number, sum_ms = broker.requests.get(request, (0, 0))
                more = self.random.randrange(1, 20)
                broker.requests[request] = number + more, sum_ms + more * self.random.randrange(1, 500)
        broker.errors += self.random.randrange(3)

    def limits(self) -> Limits:
        """Return all quotas and settings as they are now."""
        return Limits(
            rules={kind: self.table(kind) for kind in QuotaType if self.rules[kind]},
            connection_limits=dict(self.connection_limits),
            nodes={
                broker.node_id: NodeSettings(
                    request_capacity_threads=11.0, quota_callback_class="org.example.Own" if broker.callback else None
                )
                for broker in self.brokers
            },
            cluster_id=self.cluster_id,
            active_controller=self.leader,
            releases={
                broker.node_id: ReleaseRange(oldest=broker.release, newest=broker.release) for broker in self.brokers
            },
            read_at=self.clock(),
        )


_COLUMNS: dict[tuple[str, str, tuple[tuple[str, str], ...], str], BeanColumn] = {}


def column(attribute: str, kind: str, domain: str = "kafka.server", **names: str) -> BeanColumn:
    """Return the same column object for the same names."""
    key = domain, kind, tuple(names.items()), attribute
    known = _COLUMNS.get(key)
    if known is None:
        known = _COLUMNS[key] = BeanColumn(Bean.of(domain, {"type": kind, **names}), attribute)
    return known


Numbers = dict[tuple[Client, str], float]
"""What was reported of clients, in Kafka's units; a number that is missing was not."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer of an agent."""

    table: BeanTable
    asked_at: float
    """Unix time in seconds."""
    made_at: int
    """When the node had these numbers: how many answers there were until then."""
    numbers: Numbers
    started_at: float
    """Of the broker, in Unix time: no two of them begin at once."""
    leads: bool
    """Whether the node says that it is the active controller."""
    reports_start: bool
    """Whether it says when the node was started."""
    counts: dict[tuple[str, str], float]
    """The counters of the node, as it had them: throttled milliseconds and errors, by request."""
    absurd: bool
    """Whether the answer has other counters, which are far too high."""


class Agent:
    """Agent at one address."""

    def __init__(self, cluster: Cluster, broker: Broker) -> None:
        self.cluster, self.broker = cluster, broker
        self.fault = "none"
        self.reports_start = True
        """Whether its rules have the start of the node; an agent that claims the id of another one says its own."""
        self.without: frozenset[str] = frozenset()
        """Attributes that its rules leave out."""
        self.coverage = cluster.random.choice((COMPLETE, Coverage()))
        self._layout = BeanLayout(())

    def told(self, asked_at: float) -> Told:
        """Report the broker's numbers now."""
        cluster, broker, random, fault = self.cluster, self.broker, self.cluster.random, self.fault
        cluster.serve(broker)
        node_id = broker.node_id
        if fault == "contradicting":
            node_id = random.choice([*(other.node_id for other in cluster.brokers), "99"])
        columns: dict[BeanColumn, float] = {}
        numbers: Numbers = {}
        for client, attribute, value in self._of_clients():
            kind, user, client_id = client
            names = {"user": sanitize(user)} if user else {}
            if client_id or not user:
                names["client-id"] = client_id
            columns[column(attribute, kind.group, **names)] = value
            numbers[client, attribute] = value
        absurd = cluster.slips.random() < cluster.slip_share
        columns.update(self._of_node(node_id, absurd=absurd))
        if self._layout.columns != tuple(columns):
            self._layout = BeanLayout(tuple(columns))
        table = BeanTable(
            node_id=node_id,
            layout=self._layout,
            values=array("d", columns.values()),
            coverage=self.coverage,
        )
        return Told(
            table,
            asked_at,
            next(cluster.answers),
            numbers,
            broker.started_at,
            leads=broker.node_id == cluster.leader,
            reports_start=self.says_start,
            counts={
                **{(THROTTLED, request): float(sum_ms) for request, (_, sum_ms) in broker.requests.items()},
                (ERRORS, REFUSED): float(broker.errors),
            },
            absurd=absurd,
        )

    @property
    def says_start(self) -> bool:
        return self.reports_start or self.fault == "contradicting"

    def _of_clients(self) -> Iterator[tuple[Client, str, float]]:
        """Return the beans of clients, changed by the agent's present fault."""
        broker, random, fault = self.broker, self.cluster.random, self.fault
        for client, use in [*broker.used.items()]:
            if use.gone < self.cluster.clock():
                del broker.used[client]
                continue
            if fault == "half" and random.random() < 0.5:
                continue
            for attribute, real in self._of(client, use, leads=broker.node_id == self.cluster.leader):
                if attribute in self.without:
                    continue
                value = real
                if fault == "half" and random.random() < 0.2:
                    value = nan
                if fault == "wrong" and random.random() < 0.3:
                    value = random.choice((nan, inf, -inf, -1.0, 1e308, 0.0))
                yield client, attribute, value

    def _of(self, client: Client, use: Use, *, leads: bool) -> Iterator[tuple[str, float]]:
        random, kind = self.cluster.random, client[0]
        resolution = self.cluster.table(kind).limit(client[1], client[2])
        bound = 1_000.0 if resolution is None or resolution.bound is None else resolution.bound
        fading = 0.5 if use.gone < inf else 1.0
        usage = use.busy * bound * fading
        yield kind.attribute, usage and usage * random.uniform(0.9, 1.1)
        throttled = use.throttled and kind is not MUTATION
        yield "throttle-time", random.uniform(1, 900) if throttled else nan
        if kind is MUTATION and leads and resolution is not None:
            yield "tokens", random.uniform(-bound, 11 * bound)

    def _of_node(self, node_id: str, *, absurd: bool) -> Iterator[tuple[BeanColumn, float]]:
        random, broker = self.cluster.random, self.broker
        slip = float(self.cluster.slips.randrange(10**9, 10**15)) if absurd else 0.0
        if self.says_start:
            yield column("StartTimeMs", "app-info", id=node_id), broker.started_at * 1_000
        leads = broker.node_id == self.cluster.leader
        controller = column("Value", "KafkaController", "kafka.controller", name="ActiveControllerCount")
        yield controller, float(leads)
        for request, (number, sum_ms) in broker.requests.items():
            names = {"name": "ThrottleTimeMs", "request": request}
            # the mean is read a moment after the count, when another request may have come
            late = random.choice((0, 0, 3))
            yield column("Count", "RequestMetrics", "kafka.network", **names), number + slip
            yield column("Mean", "RequestMetrics", "kafka.network", **names), (sum_ms + late) / number
        if broker.errors:
            names = {"name": "ErrorsPerSec", "request": REFUSED, "error": "THROTTLING_QUOTA_EXCEEDED"}
            yield column("Count", "RequestMetrics", "kafka.network", **names), broker.errors + slip


async def seconds_of(random: Random, fault: str) -> None:
    """Wait as long as an answer takes under a fault."""
    if fault == "never":
        await asyncio.sleep(130.0)
        raise SourceUnreachable("no answer within 130 seconds")
    if fault == "late":
        await asyncio.sleep(random.choice((3.0, 8.0, 20.0, 90.0, 200.0)))
    else:
        await asyncio.sleep(random.choice((0.0, 0.001, 0.05, 0.4)))


class SimulatedSource:
    """A source of the exporter, at the address of an agent."""

    dialect = "simulated"

    def __init__(self, config: SourceConfig, agent: Agent | None, used: Callable[[SimulatedSource], None]) -> None:
        self._used = used
        self.name, self.agent = config.label, agent
        self.node_id = None if config.node_id is None else str(config.node_id)
        self.last: Told | str = "nothing yet"
        """How the last read that ended did: its answer, or the error."""
        self.began = -inf
        """When that read began, in the loop's seconds."""
        self.before: Told | str = "nothing yet"
        """The one before."""
        self.reading = False
        self.closed = False

    async def read(self) -> BeanTable:
        assert not self.closed, f"{self.name} is read though it is closed"
        assert not self.reading, f"{self.name} is read twice at once"
        self._used(self)
        self.reading, began = True, asyncio.get_running_loop().time()
        try:
            told = await self._told()
        except Exception as error:
            self.before, self.last, self.began = self.last, str(error) or type(error).__name__, began
            raise
        else:
            self.before, self.last, self.began = self.last, told, began
            return told.table
        finally:
            self.reading = False

    async def _told(self) -> Told:
        agent = self.agent
        if agent is None or agent.broker.down:
            await asyncio.sleep(0.01)
            raise SourceUnreachable("no connection")
        asked_at, random, fault = agent.cluster.clock(), agent.cluster.random, agent.fault
        early = agent.told(asked_at) if random.random() < 0.5 else None
        await seconds_of(random, fault)
        match fault:
            case "denied":
                raise SourceDenied("HTTP 401")
            case "unexpected":
                raise ZeroDivisionError
            case "twice" if isinstance(self.last, Told):
                last = self.last
                return replace(last, asked_at=asked_at)
            case "gone":
                raise SourceUnreachable("connection reset")
        return early or agent.told(asked_at)

    async def close(self) -> None:
        self.closed = True


class SimulatedLimits:
    """The Admin API."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.fault = cluster, "none"
        self.closed = False
        self.told: list[tuple[Limits, float]] = []
        """The answers, and when each was given, in Unix time."""

    async def read(self) -> Limits:
        assert not self.closed, "limits are read though their source is closed"
        cluster, random, fault = self.cluster, self.cluster.random, self.fault
        early = cluster.limits() if random.random() < 0.5 else None
        await seconds_of(random, fault)
        match fault:
            case "denied":
                raise LimitsDenied("no permission to describe the configs of the cluster")
            case "gone":
                raise LimitsError("no connection")
            case "unexpected":
                raise ZeroDivisionError
        limits = early or cluster.limits()
        if fault == "half":
            node_id = cluster.brokers[0].node_id
            nodes = {name: settings for name, settings in limits.nodes.items() if name != node_id}
            limits = Limits(
                rules=limits.rules,
                nodes=nodes,
                cluster_id=limits.cluster_id,
                missing={f"{SETTINGS_OF}{node_id}": "no permission"},
                read_at=limits.read_at,
            )
        self.told.append((limits, cluster.clock()))
        return limits

    async def close(self) -> None:
        self.closed = True


class SimulatedFinder:
    """A discovery."""

    name = "simulated"
    interval_seconds = 30.0

    def __init__(self, cluster: Cluster, url_of: Callable[[Broker], list[str]]) -> None:
        self.cluster, self._url_of, self.fault = cluster, url_of, "none"

    async def find(self) -> FoundNodes:
        random = self.cluster.random
        await seconds_of(random, self.fault)
        targets = [
            NodeTarget(url=url, name=url.removeprefix("http://").rstrip("/"), node_id=int(broker.node_id))
            for broker in self.cluster.brokers
            for url in self._url_of(broker)
        ]
        match self.fault:
            case "gone" | "denied":
                raise DiscoveryError("no connection")
            case "unexpected":
                raise ZeroDivisionError
            case "half":
                return FoundNodes(targets=tuple(targets[: len(targets) // 2]), problem="half of it")
            case "wrong":
                return FoundNodes(targets=(*targets, NodeTarget(url="no URL", name="wrong")))
            case "twice":
                targets += targets
            case "contradicting":
                random.shuffle(targets)
        return FoundNodes(targets=tuple(targets))

    async def close(self) -> None:
        """Hold nothing."""


class SimulatedSender:
    """A receiver of pushes."""

    def __init__(self, random: Random, results: list[PushResult]) -> None:
        self._random, self._results = random, results

    def send(self, snapshot: Snapshot, now: float) -> PushResult:
        assert snapshot.taken_at <= now + 1e-6
        points = len(snapshot.columns)
        result = self._random.choice(
            (
                PushResult(accepted=points),
                PushResult(accepted=points // 2, rejected=points - points // 2, reason="some"),
                PushResult(lost=points or 1, reason="HTTP 503", pause_seconds=self._random.choice((0.0, 90.0, 1e9))),
                None,
            )
        )
        if result is None:
            raise ZeroDivisionError
        self._results.append(result)
        return result

    def close(self) -> None:
        """Hold nothing."""
