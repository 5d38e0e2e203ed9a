"""The past of one cluster in a Prometheus server: its series, its nodes and their scrapes, and how it is asked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

from quotascope.metrics.kafka.entities import QuotaType

from ..errors import PipelineError
from ..recommend.policy import RuleShape
from ..table import Progress
from .promql import HOUR_S, Query, Samples, ranges

MOST_SAMPLES: Final = 5_000_000
"""Number of samples of a query; a server refuses more than 50 million by default (`--query.max-samples`)."""
_LONGEST_S: Final = 86_400.0
"""Longest range of a query in seconds: a day keeps progress in sight."""
_USUAL_INTERVAL_S: Final = 60.0

Labels: TypeAlias = Mapping[str, str]
Key: TypeAlias = frozenset[tuple[str, str]]


class NoSamples(PipelineError):
    """The server has no samples of clients in the period."""


class QueryTooLarge(PipelineError):
    """The server gave up a query, as it needs too many samples or too much time."""


class QueryRefused(PipelineError):
    """The server could not be asked, or refused a query for another reason than its size."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A series of the answer to a query."""

    labels: Labels
    samples: Sequence[tuple[float, float]]
    """Unix time in seconds and value; one, unless the query is of a range."""


class Server(Protocol):
    """A server that answers queries."""

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        """Return the answer to a query at a Unix time. Raises `QueryTooLarge` and `QueryRefused`."""


Check: TypeAlias = Callable[[Iterable[Labels]], None]
"""
Function that raises for targets that must not be added up, as they are not of one cluster.

It gets labels of the targets that have one value of the label `cluster`.
"""


def check_clusters(answers: Iterable[Answer], check: Check) -> None:
    """
    Check that the targets of each value of the label `cluster` are of one cluster.

    Args:
        answers: answers to `promql.targets`, of all families that are added up by that label.
        check: function that raises if they are not.

    """
    labels_by_cluster: dict[str, list[Labels]] = defaultdict(list)
    for answer in answers:
        labels_by_cluster[answer.labels.get("cluster", "")].append(answer.labels)
    for labels in labels_by_cluster.values():
        check(labels)


@dataclass(frozen=True, slots=True)
class Question:
    """A query about a group in a range."""

    group: Group
    begin: float
    """Unix time in seconds, which is not in the range."""
    end: float
    """Unix time in seconds, which is."""
    name: str
    query: Query


class Store(ABC):
    """Samples that are not in a server, of which the same questions are asked."""

    @abstractmethod
    def answers(
        self, questions: Sequence[Question], step_s: float, progress: Progress | None = None
    ) -> Iterator[tuple[str, Target, Answer]]:
        """Yield the name of the query, the target, and the answer, as `Past.ask` does."""


class Measured(Protocol):
    """A series of an entity's usage or throttle time on one node (`MeasuredSeries` of the exporter)."""

    @property
    def name(self) -> str:
        """Return the name of the metric."""
        ...

    @property
    def labels(self) -> Labels:
        """Return all labels as the server has them, without the name."""
        ...

    @property
    def node(self) -> str:
        """Return the node id, or the label that tells nodes apart."""
        ...

    @property
    def replica(self) -> str:
        """Return the server or exporter that saw it; empty for the only one."""
        ...

    @property
    def quota_type(self) -> QuotaType:
        """Return the quota type."""
        ...

    @property
    def is_throttle(self) -> bool:
        """Return whether it is a throttle time in seconds, else a usage."""
        ...

    @property
    def user(self) -> str:
        """Return the user; empty where the broker measures without it."""
        ...

    @property
    def client_id(self) -> str:
        """Return the client-id; empty where the broker measures without it."""
        ...

    @property
    def factor(self) -> float:
        """Return the number that makes a sample one in Kafka's unit, or in seconds."""
        ...

    @property
    def user_label(self) -> str | None:
        """Return the label that holds the user."""
        ...

    @property
    def client_label(self) -> str | None:
        """Return the label that holds the client-id."""
        ...

    @property
    def part_labels(self) -> tuple[str, ...]:
        """Return the labels that tell series of one entity apart, that of the node first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The entity, quota type and node that a series, or a sum of some, is about."""

    kind: QuotaType
    user: str | None
    """None for a name that the broker does not measure by, or that a sum has none of."""
    client_id: str | None
    node: str
    replica: str
    is_throttle: bool
    factor: float = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Series that one query asks for, by the labels of its answers."""

    samples: Samples
    targets: Mapping[Key, Target]
    series: int
    """Number of series that the server reads."""
    node_label: str

    def target(self, labels: Labels) -> Target | None:
        """Return the target of an answer; None for one that is about something else."""
        return self.targets.get(key_of(labels))

    def by_node(self, nodes_by_label: Mapping[str, int]) -> Iterator[Group]:
        """Yield a group with the same series for each node."""
        for value, count in nodes_by_label.items():
            yield replace(self, samples=replace(self.samples, node=(self.node_label, value)), series=count)

    @property
    def nodes(self) -> Mapping[str, int]:
        """Number of series by the value of the label that tells nodes apart."""
        counts: dict[str, int] = defaultdict(int)
        for key in self.targets:
            counts[dict(key).get(self.node_label, "")] += 1
        scale = self.series / max(1, len(self.targets))
        return {node: math.ceil(count * scale) for node, count in counts.items()}


def key_of(labels: Labels) -> Key:
    """Return labels as a key of `Group.targets`."""
    return frozenset((label, value) for label, value in labels.items() if label != "__name__" and value)


@dataclass(frozen=True, slots=True)
class Pace:
    """A time in which the scrapes of a node had one interval."""

    until: float
    """Its end, a whole hour as Unix time in seconds; it begins with the end of the one before."""
    interval_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The scrapes of one node in the period."""

    shortest_s: float
    """Shortest interval between scrapes in any hour, in seconds."""
    longest_s: float
    """Longest interval between scrapes in any hour, in seconds."""
    seen_s: float
    """Time that was seen, in seconds: the scrapes of each hour, times their interval."""
    paces: Mapping[str, Sequence[Pace]] = field(default_factory=dict)
    """Intervals in their order, by server or exporter (`Measured.replica`)."""

    def interval_at(self, replica: str, at: float) -> float:
        """Return the interval in seconds of a server's scrapes in the hour that has a Unix time, or ends with it."""
        paces = self.paces.get(replica, ())
        return next((pace.interval_s for pace in paces if at <= pace.until), self.shortest_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The samples of one cluster in a period."""

    server: Server | Store = field(repr=False)
    address: str
    """The server's address, or the table, without secrets."""
    selector: str
    begin: float
    """Unix time in seconds."""
    end: float
    series: Sequence[Measured] = field(repr=False)
    nodes: Mapping[str, Node]
    caveats: Sequence[str] = ()
    most_samples: int = MOST_SAMPLES

    @property
    def step_s(self) -> float:
        """The shortest scrape interval of any node in any hour, in seconds, a whole number of them."""
        return max(1.0, round(min((node.shortest_s for node in self.nodes.values()), default=_USUAL_INTERVAL_S)))

    @property
    def interval_s(self) -> float:
        """The longest scrape interval of any node in any hour, in seconds."""
        return max((node.longest_s for node in self.nodes.values()), default=_USUAL_INTERVAL_S)

    @property
    def pace(self) -> str:
        """The scrape intervals of all nodes as a phrase: `every 10 s`, or `every 10 to 30 s`."""
        shortest = min((node.shortest_s for node in self.nodes.values()), default=_USUAL_INTERVAL_S)
        texts = dict.fromkeys(f"{interval_s:.3g}" for interval_s in (shortest, self.interval_s))
        return f"every {' to '.join(texts)} s"

    @property
    def seconds(self) -> float:
        """Length of the period."""
        return self.end - self.begin

    def interval_of(self, node: str) -> float:
        """Return the longest scrape interval of a node in seconds; the longest of any if it is unknown."""
        return self.nodes[node].longest_s if node in self.nodes else self.interval_s

    def coverage(self, node: str) -> float:
        """Return the part of the period for which there are samples of a node, from 0 to 1."""
        known = self.nodes.get(node)
        return 0.0 if known is None else min(1.0, known.seen_s / self.seconds)

    def groups(self, *, throttles: bool, shape: RuleShape | None = None) -> list[Group]:
        """
        Return the series of usages, or of throttle times, as they are asked for.

        Args:
            throttles: whether it is throttle times.
            shape: entities that are added up on each node; None for those that brokers measure.

        """
        targets_by_query: dict[tuple[str, tuple[str, ...], float], dict[Key, Target]] = defaultdict(dict)
        counts: dict[tuple[str, tuple[str, ...], float], int] = defaultdict(int)
        node_labels: dict[str, str] = {}
        for one in self.series:
            names = _labels_of(one, shape)
            if one.is_throttle is not throttles or names is None:
                continue
            by = () if shape is None else (*one.part_labels, *names)
            labels = one.labels if shape is None else {label: one.labels.get(label, "") for label in by}
            pair = shape in {None, RuleShape.PAIR}
            targets_by_query[one.name, by, one.factor][key_of(labels)] = Target(
                kind=one.quota_type,
                user=(one.user or None) if pair or shape is RuleShape.USER else None,
                client_id=(one.client_id or None) if pair or shape is RuleShape.CLIENT else None,
                node=one.node,
                replica=one.replica,
                is_throttle=throttles,
                factor=one.factor,
            )
            counts[one.name, by, one.factor] += 1
            node_labels[one.name] = one.part_labels[0]
        return [
            Group(
                samples=Samples(name=name, selector=self.selector, by=by, factor=factor, of_rates=not throttles),
                targets=targets,
                series=counts[name, by, factor],
                node_label=node_labels[name],
            )
            for (name, by, factor), targets in targets_by_query.items()
        ]

    def left_out(self, shape: RuleShape | None) -> int:
        """Return the number of entities that the shape cannot name, as brokers do not measure by these names."""
        if shape is None:
            return 0
        return len({(one.user, one.client_id) for one in self.series if _labels_of(one, shape) is None})

    def lengths(self, group: Group, *, divisible: bool) -> float:
        """Return the length of the ranges in which a group is asked for, in seconds: whole hours."""
        if not divisible:
            return self.seconds
        fitting = self.most_samples * self.step_s / max(1, group.series)
        return max(HOUR_S, min(_LONGEST_S, fitting // HOUR_S * HOUR_S))

    def ask(
        self,
        groups: Sequence[Group],
        queries: Mapping[str, Query],
        *,
        divisible: bool = True,
        as_scraped: Collection[str] = (),
        progress: Progress | None = None,
    ) -> Iterator[tuple[str, Target, Answer]]:
        """
        Ask each query about each group, in ranges that a server can answer.

        Yields the name of the query, the target, and the answer, of which there is one for each range.

        Args:
            groups: the series.
            queries: functions of samples, the length of a range and the step in seconds, by name.
            divisible: whether the answers of ranges can be combined; the whole period is one otherwise.
            as_scraped: names of the queries whose ranges have one scrape interval on each node.
            progress: called with the number of queries that are done, and of all.

        """
        planned = [
            Question(group, *part, name, query)
            for group in groups
            for span in ranges(self.begin, self.end, self.lengths(group, divisible=divisible))
            for name, query in queries.items()
            for part in (self._paced(span) if name in as_scraped else (span,))
        ]
        if isinstance(self.server, Store):
            yield from self.server.answers(planned, self.step_s, progress)
            return
        for done, one in enumerate(planned):
            if progress is not None:
                progress(done, len(planned))
            for target, answer in self._asked(
                self.server, one.group, one.query, one.begin, one.end, divisible=divisible
            ):
                yield one.name, target, answer
        if progress is not None:
            progress(len(planned), len(planned))

    def _paced(self, span: tuple[float, float]) -> Iterator[tuple[float, float]]:
        """Yield the parts of a range within which no scrape interval changes."""
        begin, end = span
        changes = {pace.until for node in self.nodes.values() for paces in node.paces.values() for pace in paces}
        for until in sorted(change for change in {*changes, end} if begin < change <= end):
            yield begin, until
            begin = until

    def _asked(
        self, server: Server, group: Group, query: Query, begin: float, end: float, *, divisible: bool
    ) -> Iterator[tuple[Target, Answer]]:
        """Yield the answers about a range; one that is too large is divided by time, then by node."""
        too_large = group.series * (end - begin) / self.step_s > self.most_samples
        can_divide = divisible and end - begin > HOUR_S
        nodes = {} if group.samples.node is not None else group.nodes
        if not (too_large and (can_divide or len(nodes) > 1)):
            try:
                answers = server.ask(query(group.samples, end - begin, self.step_s), end)
            except QueryTooLarge as error:
                if not can_divide and len(nodes) < 2:  # noqa: PLR2004 - nothing to divide
                    raise QueryTooLarge(
                        f"{error}. Its smallest query is too large for the server: take fewer --days, a selector of "
                        "fewer series, or raise its limits (--query.max-samples, --query.timeout)"
                    ) from None
            else:
                for answer in answers:
                    target = group.target(answer.labels)
                    if target is not None:
                        yield target, answer
                return
        if can_divide:
            half = max(HOUR_S, (end - begin) / 2 // HOUR_S * HOUR_S)
            for part in ranges(begin, end, half):
                yield from self._asked(server, group, query, *part, divisible=divisible)
        else:
            for part_of_group in group.by_node(nodes):
                yield from self._asked(server, part_of_group, query, begin, end, divisible=divisible)


def _labels_of(one: Measured, shape: RuleShape | None) -> tuple[str, ...] | None:
    """Return the labels that hold the names of a shape; None if a series has no such names."""
    if shape is None:
        return ()
    values = {"user": (one.user, one.user_label), "client_id": (one.client_id, one.client_label)}
    wanted = [values[name] for name in shape.names]
    if not all(name and label for name, label in wanted):
        return None
    return tuple(label for _, label in wanted if label)
