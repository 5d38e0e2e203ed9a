"""What the samples of an entity say on each node, and what they cannot have seen."""

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
"""Scrape interval in seconds that sees each burst at its height: half of Kafka's window."""

Entity = tuple[QuotaType, str | None, str | None]


class Sight(Enum):
    """How much of a load its samples saw; the value is a word for programs."""

    WHOLE = "whole"
    """Each request is in a sample, as the broker's window is as long as the scrape interval."""
    SPARSE = "sparse"
    """Samples are further apart than the broker's window: what was between them is unknown."""
    BURSTS = "bursts"
    """The load comes in bursts shorter than a minute, and a scrape may miss the height of each of them."""
    UNSEEN = "unseen"
    """No sample is above 0, although the entity was active: brokers forget entities that are not, after an hour."""


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Figures of an entity and quota type on one node, over the period."""

    need: float = 0.0
    """Rate that the policy's share of the time above 0 stays below, in Kafka's unit."""
    highest: float = 0.0
    """Highest sample, where it was asked for."""
    active_s: float = 0.0
    """Time above 0."""
    changes: float = 0.0
    """Number of times that the load began or ended."""
    seen_s: float = 0.0
    """Time for which there are samples."""
    amount: float = 0.0
    """Sum of rate x time that was seen, where it was asked for."""
    throttled_s: float = 0.0
    """Time with a throttle time above 0."""
    above_s: float = 0.0
    """Time above a limit, where it was asked for."""

    def most(self, other: Evidence) -> Evidence:
        """Return the greater of each figure: of two servers that scraped one node, one may have seen more."""
        return Evidence(**{name: max(getattr(self, name), getattr(other, name)) for name in _FIGURES})

    def sight(self, interval_s: float, windows: WindowConfig, seen_by_s: float | None = None) -> Sight:
        """
        Return how much of the load samples saw that were so far apart.

        Args:
            interval_s: scrape interval in seconds.
            windows: windows of the broker's rate.
            seen_by_s: longest interval that sees bursts well enough; half of the window for their height.

        """
        window_s = (windows.samples - 1) * windows.window_seconds
        seen_by_s = window_s / 2 if seen_by_s is None else seen_by_s
        if not self.active_s:
            # samples cover the broker's window without a gap, so it was empty
            return Sight.WHOLE if interval_s <= window_s else Sight.UNSEEN
        rises = self.changes / 2
        if interval_s > seen_by_s and rises >= 1 and self.active_s / rises < BURST_S:
            return Sight.BURSTS
        return Sight.WHOLE if interval_s <= window_s else Sight.SPARSE


def worst(sights: Collection[Sight]) -> Sight:
    """Return the sight of a load on several nodes: one that was in no sample of a node may be missed on others."""
    if Sight.UNSEEN in sights:
        return Sight.UNSEEN if set(sights) == {Sight.UNSEEN} else Sight.BURSTS
    return next((one for one in (Sight.BURSTS, Sight.SPARSE) if one in sights), Sight.WHOLE)


_FIGURES: Final = tuple(Evidence.__slots__)
_MOST: Final = frozenset(["need", "highest"])


def by_node(answers: Iterable[tuple[str, Target, float]]) -> dict[Entity, dict[str, Evidence]]:
    """
    Add up answers, by entity and node.

    Ranges of one server add up. If several servers, or exporters, scraped one node, the greater figures count.
    """
    by_server: dict[tuple[Entity, str, str], Evidence] = defaultdict(Evidence)
    for name, target, value in answers:
        evidence = by_server[(target.kind, target.user, target.client_id), target.node, target.replica]
        earlier = getattr(evidence, name)
        setattr(evidence, name, max(earlier, value) if name in _MOST else earlier + value)
    combined: dict[Entity, dict[str, Evidence]] = defaultdict(dict)
    for (entity, node, _), evidence in by_server.items():
        known = combined[entity].get(node)
        combined[entity][node] = evidence if known is None else known.most(evidence)
    return combined


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
    Yield the figures of each entity on each node, in Kafka's unit or in seconds.

    Counts of samples and sums become times and amounts: a sample stands for the time until the next scrape, by the
    interval that the node's scrapes had in its hour. In an hour in which the interval changed, that is the shortest of
    it, so that the amount is a lower bound, as `Node.seen_s` is. Counts of steps are times of a step each.
    """
    groups = past.groups(throttles=throttles, shape=shape)
    as_scraped = _AS_SCRAPED if shape is None else frozenset[str]()
    asked = past.ask(groups, queries, divisible=divisible, as_scraped=as_scraped, progress=progress)
    for name, target, answer in asked:
        at, value = answer.samples[-1]
        node = past.nodes.get(target.node) if name in as_scraped else None
        seconds = past.step_s if node is None else node.interval_at(target.replica, at)
        if name in _TIMES:
            value *= seconds
        if name in _RATES:
            value *= target.factor
        yield name, target, value


_TIMES: Final = frozenset(["active_s", "seen_s", "throttled_s", "above_s", "amount"])
_AS_SCRAPED: Final = frozenset(["seen_s", "amount"])
"""Figures of samples as they were scraped, not of steps."""
_RATES: Final = frozenset(["need", "highest", "amount"])


def needs_of(
    past: Past, share: float, *, by_hour: bool, shape: RuleShape | None = None, progress: Sequence[Progress | None] = ()
) -> dict[Entity, dict[str, Evidence]]:
    """
    Return the evidence of all entities for their lowest limits.

    Args:
        past: the samples.
        share: part of the time above 0 in which a limit may be exceeded.
        by_hour: whether each clock hour has to keep the share, or all of the period together.
        shape: entities that are added up on each node; None for those that brokers measure.
        progress: called with the number of queries that are done, and of all: for rates, and for throttle times.

    """
    of_rates, of_throttles = (*progress, None, None)[:2]
    need = partial(promql.highest_hour if by_hour else promql.quantile, share=1 - share)
    queries: dict[str, promql.Query] = {
        "active_s": promql.active,
        "changes": promql.changes,
        "seen_s": promql.seen,
        **({"need": need} if by_hour else {}),
    }
    answers = list(answered(past, queries, shape=shape, progress=of_rates))
    if not by_hour:
        answers += answered(past, {"need": need}, shape=shape, divisible=False, progress=of_rates)
    answers += answered(past, {"throttled_s": promql.active}, throttles=True, shape=shape, progress=of_throttles)
    return by_node(answers)
