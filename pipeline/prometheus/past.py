"""The past of one cluster in a Prometheus server: its series, the scrapes of its nodes, and queries about it."""

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
"""Largest number of samples of a query; by default a server refuses more than 50 million (`--query.max-samples`)."""
_LONGEST_S: Final = 86_400.0
"""Longest range of a query in seconds. With a day, progress can be shown."""
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
    """Pairs of Unix time in seconds and value. There is one pair unless the query asks for a range."""


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
    """Begin of the range, Unix time in seconds, which is not part of it."""
    end: float
    """End of the range, Unix time in seconds, which is part of it."""
    name: str
    """Name of the query."""
    query: Query


class Store(ABC):
    """A store of samples that answers the same questions as a server."""

    @abstractmethod
    def answers(
        self, questions: Sequence[Question], step_s: float, progress: Progress | None = None
    ) -> Iterator[tuple[str, Target, Answer]]:
        """Yield the name of the query, the target, and the answer, for each range as `Past.ask`."""


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
        """Return the server or exporter that scraped the series; empty if there is only one."""
        ...

    @property
    def quota_type(self) -> QuotaType:
        """Return the quota type."""
        ...

    @property
    def is_throttle(self) -> bool:
        """Return True for a series of throttle times, False for a series of usages."""
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
        """Return the factor that converts a sample to Kafka's unit, or to seconds."""
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
        """Return the labels that tell series of one entity apart; the first is the node's."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The entity, quota type and node that a series, or a sum of series, is about."""

    kind: QuotaType
    user: str | None
    """Name of the user; None if the broker measures without it, or a sum is over users."""
    client_id: str | None
    """Client id; None if the broker measures without it, or a sum is over client ids."""
    node: str
    replica: str
    is_throttle: bool
    factor: float = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Series that one query asks for."""

    samples: Samples
    """Description of the series for queries."""
    targets: Mapping[Key, Target]
    """Targets by the labels of the query's answers."""
    series: int
    """Number of series that the server reads."""
    node_label: str
    """Label that tells nodes apart."""

    def target(self, labels: Labels) -> Target | None:
        """Return the target of an answer by its labels; None if no target has them."""
        return self.targets.get(key_of(labels))

    def by_node(self, nodes_by_label: Mapping[str, int]) -> Iterator[Group]:
        """Yield the group once for each node, with a selector of the node; numbers of series are by `node_label`."""
        for value, count in nodes_by_label.items():
            yield replace(self, samples=replace(self.samples, node=(self.node_label, value)), series=count)

    @property
    def nodes(self) -> Mapping[str, int]:
        """Number of series by the value of `node_label`, estimated if the group is of sums."""
        counts: dict[str, int] = defaultdict(int)
        for key in self.targets:
            counts[dict(key).get(self.node_label, "")] += 1
        scale = self.series / max(1, len(self.targets))
        return {node: math.ceil(count * scale) for node, count in counts.items()}


def key_of(labels: Labels) -> Key:
    """Return labels, without the name and empty ones, as a key of `Group.targets`."""
    return frozenset((label, value) for label, value in labels.items() if label != "__name__" and value)


@dataclass(frozen=True, slots=True)
class Pace:
    """A period in which the scrapes of a node had one interval; it begins with the end of the previous one."""

    until: float
    """End of the period, a whole hour as Unix time in seconds."""
    interval_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The scrapes of one node in the period."""

    shortest_s: float
    """Shortest interval between scrapes in any hour, in seconds."""
    longest_s: float
    """Longest interval between scrapes in any hour, in seconds."""
    seen_s: float
    """Time that was seen, in seconds: the sum over all hours of the number of scrapes times their interval."""
    paces: Mapping[str, Sequence[Pace]] = field(default_factory=dict)
    """Paces in order of time, by server or exporter (`Measured.replica`)."""

    def interval_at(self, replica: str, at: float) -> float:
        """Return the interval, in seconds, of a server's scrapes in the hour that contains a Unix time."""
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
        if node not in self.nodes:
            return 0.0
        return min(1.0, self.nodes[node].seen_s / self.seconds)

    def groups(self, *, throttles: bool, shape: RuleShape | None = None) -> list[Group]:
        """
        Return the series of usages, or of throttle times, grouped by the query that asks for them.

        Args:
            throttles: whether to return series of throttle times instead of usages.
            shape: entities that are added up on each node; None for the entities that brokers measure.

        """
        groups: dict[tuple[str, tuple[str, ...], float], list[Measured]] = defaultdict(list)
        for series in self.series:
            names = _labels_of(series, shape)
            if series.is_throttle is throttles and names is not None:
                by = () if shape is None else (*series.part_labels, *names)
                groups[series.name, by, series.factor].append(series)
        return [
            Group(
                samples=Samples(name=name, selector=self.selector, by=by, factor=factor, of_rates=not throttles),
                targets=dict(_target_of(series, shape, by) for series in members),
                series=len(members),
                node_label=members[-1].part_labels[0],
            )
            for (name, by, factor), members in groups.items()
        ]

    def left_out(self, shape: RuleShape | None) -> int:
        """Return the number of entities that have no name of the shape, as brokers measure them without it."""
        if shape is None:
            return 0
        return len({(series.user, series.client_id) for series in self.series if _labels_of(series, shape) is None})

    def lengths(self, group: Group, *, divisible: bool) -> float:
        """Return the length of the ranges of queries about a group, in seconds: whole hours, or the whole period."""
        if not divisible:
            return self.seconds
        # seconds in which all series together have `most_samples`
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
        Ask all queries about all groups, in ranges that a server can answer.

        Yield the name of the query, the target, and the answer, for each range.

        Args:
            groups: the series.
            queries: queries by name.
            divisible: whether the answers of ranges can be combined; otherwise the whole period is one range.
            as_scraped: names of the queries whose ranges must have a single scrape interval on each node.
            progress: called with the number of queries that are done, and of all.

        """
        questions: list[Question] = []
        for group in groups:
            for span in ranges(self.begin, self.end, self.lengths(group, divisible=divisible)):
                for name, query in queries.items():
                    parts = self._paced(span) if name in as_scraped else (span,)
                    questions += [Question(group, begin, end, name, query) for begin, end in parts]
        if isinstance(self.server, Store):
            yield from self.server.answers(questions, self.step_s, progress)
            return
        for done, asked in enumerate(questions):
            if progress is not None:
                progress(done, len(questions))
            for target, answer in self._asked(
                self.server, asked.group, asked.query, asked.begin, asked.end, divisible=divisible
            ):
                yield asked.name, target, answer
        if progress is not None:
            progress(len(questions), len(questions))

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
        """Yield the answers about a range. A query that is too large is divided by time, and then by node."""
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


def _target_of(series: Measured, shape: RuleShape | None, by: Sequence[str]) -> tuple[Key, Target]:
    """Return the target of a series, with its key in `Group.targets`; `by` has the labels of a sum."""
    labels = series.labels if shape is None else {label: series.labels.get(label, "") for label in by}
    target = Target(
        kind=series.quota_type,
        user=None if shape is RuleShape.CLIENT else series.user or None,
        client_id=None if shape is RuleShape.USER else series.client_id or None,
        node=series.node,
        replica=series.replica,
        is_throttle=series.is_throttle,
        factor=series.factor,
    )
    return key_of(labels), target


def _labels_of(series: Measured, shape: RuleShape | None) -> tuple[str, ...] | None:
    """Return the labels that hold the names of a shape; None if the series lacks one of the names."""
    if shape is None:
        return ()
    labels = []
    for name in shape.names:
        value, label = (series.user, series.user_label) if name == "user" else (series.client_id, series.client_label)
        if not value or not label:
            return None
        labels.append(label)
    return tuple(labels)
