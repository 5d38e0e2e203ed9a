"""Figures of an entity on a node from its samples, and how much of its load the samples can have missed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.windows import WindowConfig

from ..recommend.policy import RuleShape
from ..table import Progress
from . import promql
from .past import Past, Target

BURST_S: Final = 60.0
"""Mean length of the times above 0, in seconds, below which a load counts as bursts."""
SEEN_BY_S: Final = 5.0
"""Longest scrape interval, in seconds, with which no burst is missed at its height: half of Kafka's windows."""

Entity = tuple[QuotaType, str | None, str | None]


class Sight(Enum):
    """Part of a load that its samples saw. The value is a word for programs."""

    WHOLE = "whole"
    """Every request is in a sample, because the scrape interval is not longer than the broker's windows."""
    SPARSE = "sparse"
    """Samples are further apart than the broker's windows are long, so that the load between them is unknown."""
    BURSTS = "bursts"
    """The load comes in bursts shorter than a minute, and scrapes may miss their height."""
    UNSEEN = "unseen"
    """No sample is above 0, although the entity was active: otherwise the broker would have dropped it in an hour."""


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Figures of an entity and quota type on one node, over the period."""

    need: float = 0.0
    """Rate that is only exceeded for the policy's share of the time above 0, in Kafka's unit."""
    highest: float = 0.0
    """Highest sample; 0 if no query asked for it."""
    active_s: float = 0.0
    """Time above 0."""
    changes: float = 0.0
    """Number of times that the load began or ended."""
    seen_s: float = 0.0
    """Time for which there are samples."""
    amount: float = 0.0
    """Sum of the samples times the time that they stand for; 0 if no query asked for it."""
    throttled_s: float = 0.0
    """Time with a throttle time above 0."""
    above_s: float = 0.0
    """Time above a limit; 0 if no query asked for it."""

    def maximum(self, other: Evidence) -> Evidence:
        """Return the larger value of every figure: of two servers that scraped a node, one may have seen more."""
        return Evidence(**{name: max(getattr(self, name), getattr(other, name)) for name in _FIGURES})

    def sight(self, interval_s: float, windows: WindowConfig, seen_by_s: float | None = None) -> Sight:
        """
        Return the part of the load that was seen with a scrape interval.

        Args:
            interval_s: scrape interval in seconds.
            windows: windows of the broker's rate.
            seen_by_s: longest scrape interval, in seconds, that sees enough of a burst; by default half of the
                windows' length, which misses no burst at its height.

        """
        window_s = (windows.samples - 1) * windows.window_seconds
        seen_by_s = window_s / 2 if seen_by_s is None else seen_by_s
        if not self.active_s:
            # samples cover the broker's window without a gap, so it was empty
            return Sight.WHOLE if interval_s <= window_s else Sight.UNSEEN
        bursts = self.changes / 2  # a burst begins and ends
        if interval_s > seen_by_s and bursts >= 1 and self.active_s / bursts < BURST_S:
            return Sight.BURSTS
        return Sight.WHOLE if interval_s <= window_s else Sight.SPARSE


def worst(sights: Collection[Sight]) -> Sight:
    """
    Return the sight of a load on several nodes: the worst of them.

    If the load is unseen on some nodes only, it must be short, so that other nodes may have missed bursts.
    """
    if set(sights) == {Sight.UNSEEN}:
        return Sight.UNSEEN
    if Sight.UNSEEN in sights or Sight.BURSTS in sights:
        return Sight.BURSTS
    return Sight.SPARSE if Sight.SPARSE in sights else Sight.WHOLE


_FIGURES: Final = tuple(Evidence.__slots__)
_MOST: Final = frozenset(["need", "highest"])


def by_node(answers: Iterable[tuple[str, Target, float]]) -> dict[Entity, dict[str, Evidence]]:
    """
    Return the evidence by entity and node, the nodes in order.

    Figures of several ranges are added up. If several servers, or exporters, scraped a node, the larger figures count.
    """
    by_server: dict[tuple[Entity, str, str], Evidence] = defaultdict(Evidence)
    for name, target, value in answers:
        evidence = by_server[(target.kind, target.user, target.client_id), target.node, target.replica]
        earlier = getattr(evidence, name)
        setattr(evidence, name, max(earlier, value) if name in _MOST else earlier + value)
    combined: dict[Entity, dict[str, Evidence]] = defaultdict(dict)
    for (entity, node, _), evidence in by_server.items():
        of_other_server = combined[entity].get(node)
        combined[entity][node] = evidence if of_other_server is None else of_other_server.maximum(evidence)
    # answers of servers are in no order, and of nodes with equal figures one is named
    return {
        entity: dict(sorted(nodes.items(), key=lambda item: (len(item[0]), item[0])))
        for entity, nodes in combined.items()
    }


def answered(
    past: Past,
    queries: Mapping[str, promql.Query],
    *,
    throttles: bool = False,
    shape: RuleShape | None = None,
    divisible: bool = True,
    progress: Progress | None = None,
) -> Iterable[tuple[str, Target, float]]:
    """
    Yield the name of the figure, the entity on a node, and the value in Kafka's unit or in seconds.

    Counts of samples become times, and sums of samples become amounts. A sample stands for the scrape interval that the
    node had in its hour. If the interval changed in the hour, that is the shortest one, so that the amount is a lower
    bound, as `Node.seen_s` is. A step stands for the length of a step.

    Args:
        past: samples.
        queries: queries by the name of the figure of `Evidence`.
        throttles: whether the queries are about throttle times instead of usages.
        shape: entities that are added up on each node; None for the entities that brokers measure.
        divisible: whether answers of ranges can be combined.
        progress: called with the number of queries that are done, and of all.

    """
    groups = past.groups(throttles=throttles, shape=shape)
    as_scraped = _AS_SCRAPED if shape is None else frozenset[str]()
    answers = past.ask(groups, queries, divisible=divisible, as_scraped=as_scraped, progress=progress)
    for name, target, answer in answers:
        at, value = answer.samples[-1]
        node = past.nodes.get(target.node) if name in as_scraped else None
        seconds = past.step_s if node is None else node.interval_at(target.replica, at)
        if name in _TIMES:
            value *= seconds
        if name in _RATES:
            value *= target.factor
        yield name, target, value


_TIMES: Final = frozenset(["active_s", "seen_s", "throttled_s", "above_s", "amount"])
"""Figures that are times, or have a time as a factor."""
_AS_SCRAPED: Final = frozenset(["seen_s", "amount"])
"""Figures that are computed from samples as they were scraped, and not from steps."""
_RATES: Final = frozenset(["need", "highest", "amount"])


def needs_of(
    past: Past, share: float, *, by_hour: bool, shape: RuleShape | None = None, progress: Sequence[Progress | None] = ()
) -> dict[Entity, dict[str, Evidence]]:
    """
    Return the evidence that limits are recommended by, by entity and node.

    Args:
        past: samples.
        share: part of the time above 0 in which a limit may be exceeded.
        by_hour: whether the share applies to every clock hour, instead of the whole period.
        shape: entities that are added up on each node; None for the entities that brokers measure.
        progress: two functions that are called with the number of queries that are done, and of all: for rates, and for
            throttle times. Missing ones are not called.

    """
    rate_progress, throttle_progress = (*progress, None, None)[:2]
    queries: dict[str, promql.Query] = {
        "active_s": promql.active,
        "changes": promql.changes,
        "seen_s": promql.seen,
    }
    if by_hour:
        queries["need"] = partial(promql.highest_hour, share=1 - share)
    answers = list(answered(past, queries, shape=shape, progress=rate_progress))
    if not by_hour:
        need = {"need": partial(promql.quantile, share=1 - share)}
        answers += answered(past, need, shape=shape, divisible=False, progress=rate_progress)
    throttled = {"throttled_s": promql.active}
    answers += answered(past, throttled, throttles=True, shape=shape, progress=throttle_progress)
    return by_node(answers)
