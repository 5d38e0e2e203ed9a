"""Clients that candidate quotas would have throttled, by the samples of a Prometheus server, and its report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Any, Final, TypeAlias

from quotascope.metrics.kafka.entities import QuotaType, spelled
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pages.baseline import HELD_BACK_LOGGED, lower_bound
from quotascope.pages.report import Block, Report, Rows, csv_of
from quotascope.pages.words import counted, percent, period, seconds, shown, spaced
from quotascope.quotas.candidates import Candidate

from ..errors import PipelineError
from ..rates import rate
from ..recommend.policy import RuleShape
from ..table import Progress
from . import promql
from .advice import LEAST_GAP
from .evidence import Entity, Evidence, Sight, answered, by_node, worst
from .past import NoSamples, Past
from .tags import TagsOf

_MOST_LIMITS: Final = 500
"""Number of different limits of a quota type that are asked for; a query each."""
_HEADS: Final = ("entity", "=quota", "#limit", "rule", "#throttled for", "#share", "#throttled then", "node", "samples")
_COLUMNS: Final = (
    *("candidate", "user", "client_id", "quota_type", "limit", "rule"),
    *("above_seconds", "active_seconds", "above_share"),
    *("node", "throttled_seconds", "change", "held_back", "sight", "coverage"),
)
NOTES: Final = (
    ("Throttled is the time for which the rate was above the limit, on the node with most of it. Clients are taken as "
    "they were, not slowed down (open loop); `quotascope whatif` replays requests."),
    "A load within 5 % of a limit may be on either side: brokers check rates at requests, where they are highest.",
)  # fmt: skip


class TooManyLimits(PipelineError):
    """The candidates have more limits than a server should be asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a candidate would have done to an entity, by one quota type."""

    kind: QuotaType
    user: str | None
    client_id: str | None
    limit: float
    rule: str
    evidence: Evidence
    """Figures of the node with the longest time above the limit."""
    node: str
    sight: Sight
    coverage: float

    @property
    def share(self) -> float:
        """Part of the active time above the limit."""
        return min(1.0, self.evidence.above_s / self.evidence.active_s) if self.evidence.active_s else 0.0

    @property
    def held_back(self) -> bool:
        """True if it was throttled in the period: without that quota, it would have used more."""
        return self.evidence.throttled_s > 0

    @property
    def is_throttled(self) -> bool:
        """True if samples are above the limit."""
        return self.evidence.above_s > 0

    @property
    def change(self) -> str:
        """Return `new` or `throttled` for an entity above the limit, else `ended`, or `none`."""
        if self.is_throttled:
            return "throttled" if self.held_back else "new"
        return "ended" if self.held_back else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcomes of one candidate."""

    candidate: str
    outcomes: Sequence[Outcome]
    """Of all entities that it limits, the longest above its limit first."""
    unknown: Sequence[tuple[QuotaType, str | None, str | None, str]]
    """Entities whose outcome the samples do not show, with reasons."""
    without_limit: int
    """Number of entities and quota types that it does not limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """The outcomes of all candidates over a period."""

    past: Past
    results: Sequence[Result]


_Asked: TypeAlias = tuple[QuotaType, RuleShape | None]


@dataclass(frozen=True, slots=True)
class _Measure:
    """The entity by which a candidate's quota would measure: sums of a shape, or what brokers measured."""

    entity: Entity
    shape: RuleShape | None

    @property
    def asked(self) -> _Asked:
        """Key of the queries for its figures: a limit is only queried for series of its quota type."""
        return self.entity[0], self.shape


def backtest(past: Past, candidates: Sequence[Candidate], progress: Progress | None = None) -> Backtest:
    """
    Return for which part of its active time each entity was above the limits of candidates.

    Raises:
        NoSamples: no client was measured in the period.
        TooManyLimits: the candidates have too many different limits.

    """
    entities = sorted(
        {(one.quota_type, one.user, one.client_id) for one in past.series if not one.is_throttle},
        key=lambda entity: (entity[0].value, *entity[1:]),
    )
    if not entities:
        raise NoSamples(f"{past.address}: no client was measured in this period")
    plans = [_plan(candidate, entities) for candidate in candidates]
    limits: dict[_Asked, set[float]] = defaultdict(set)
    for plan in plans:
        for measure, (limit, _) in plan.limits.items():
            limits[measure.asked].add(limit)
    _refuse_many(limits)
    evidence = {asked: _evidence(past, asked, sorted(values), progress) for asked, values in limits.items()}
    return Backtest(past=past, results=[_result(past, plan, evidence) for plan in plans])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    candidate: str
    windows: WindowConfig
    limits: Mapping[_Measure, tuple[float, str]]
    unknown: Sequence[tuple[QuotaType, str | None, str | None, str]]
    without_limit: int


def _plan(candidate: Candidate, entities: Sequence[tuple[QuotaType, str, str]]) -> _Plan:
    """Resolve a candidate's limits for all measured entities by Kafka's precedence."""
    limits: dict[_Measure, tuple[float, str]] = {}
    unknown: dict[tuple[QuotaType, str | None, str | None, str], None] = {}
    unlimited = 0
    tables = candidate.tables()
    tags_of = {
        kind: TagsOf(table, {(user, client_id) for one, user, client_id in entities if one is kind})
        for kind, table in tables.items()
    }
    for kind, user, client_id in entities:
        table = tables[kind]
        if kind is QuotaType.CONTROLLER_MUTATION:
            if table.enabled:
                unknown[kind, user or None, client_id or None, "the state of its token bucket is in no sample"] = None
            continue
        if not table.enabled:
            unlimited += 1
            continue
        tags, reason = tags_of[kind].names((user, client_id))
        if tags is None:
            unknown[kind, user or None, client_id or None, reason] = None
            continue
        decision = table.limit(*tags)
        bound = None if decision is None or decision.entity is None else decision.bound
        if decision is None or decision.entity is None or bound is None or not isfinite(bound):
            unlimited += 1
            continue
        shape = None
        if tags != (user, client_id):
            shape = RuleShape.USER if tags[0] else RuleShape.CLIENT
        entity = kind, tags[0] or None, tags[1] or None
        limits[_Measure(entity, shape)] = bound, decision.entity.rule
    return _Plan(
        candidate=candidate.name, windows=candidate.windows, limits=limits, unknown=[*unknown], without_limit=unlimited
    )


def _refuse_many(limits: Mapping[_Asked, set[float]]) -> None:
    """Raise `TooManyLimits` for a quota type of which too many different limits would be asked for."""
    of_kind: dict[QuotaType, int] = defaultdict(int)
    for (kind, _), values in limits.items():
        of_kind[kind] += len(values)
    for kind, count in of_kind.items():
        if count > _MOST_LIMITS:
            raise TooManyLimits(
                f"the candidates have {count:,} different limits of {spaced(kind.label)}, and each is a query: at most "
                f"{_MOST_LIMITS} are asked for; take fewer candidates, or `quotascope whatif` over a usage history"
            )


def _evidence(
    past: Past, asked: _Asked, values: Sequence[float], progress: Progress | None
) -> dict[float, dict[Entity, dict[str, Evidence]]]:
    """Return the figures of all entities of a quota type by limit; 0 has those that are the same for all limits."""
    kind, shape = asked
    past = replace(past, series=[one for one in past.series if one.quota_type is kind])
    names = {f"above {limit!r}": limit for limit in values}
    queries: dict[str, promql.Query] = {
        "active_s": promql.active,
        "changes": promql.changes,
        "seen_s": promql.seen,
        **{name: partial(promql.active, above=limit) for name, limit in names.items()},
    }
    common, by_limit = [], defaultdict(list)
    for name, target, value in answered(past, queries, shape=shape, progress=progress):
        if name in names:
            by_limit[names[name]].append(("above_s", target, value * past.step_s))
        else:
            common.append((name, target, value))
    common += answered(past, {"throttled_s": promql.active}, throttles=True, shape=shape, progress=progress)
    return {0.0: by_node(common), **{limit: by_node(figures) for limit, figures in by_limit.items()}}


def _result(
    past: Past,
    plan: _Plan,
    evidence: Mapping[_Asked, Mapping[float, Mapping[Entity, Mapping[str, Evidence]]]],
) -> Result:
    outcomes = []
    for measure, (limit, rule) in plan.limits.items():
        of_kind = evidence[measure.asked]
        nodes = of_kind[0.0].get(measure.entity, {})
        if not nodes:
            continue
        above = of_kind.get(limit, {}).get(measure.entity, {})
        node = max(nodes, key=lambda name: (above[name].above_s if name in above else 0.0, nodes[name].active_s))
        figures = nodes[node].most(above.get(node, Evidence()))
        figures.throttled_s = max(one.throttled_s for one in nodes.values())
        seen = {name: one for name, one in nodes.items() if one.seen_s}
        kind, user, client_id = measure.entity
        outcomes.append(
            Outcome(
                kind=kind,
                user=user,
                client_id=client_id,
                limit=limit,
                rule=rule,
                evidence=figures,
                node=node,
                sight=worst({one.sight(past.interval_of(name), plan.windows) for name, one in seen.items()}),
                coverage=min((past.coverage(name) for name in seen), default=0.0),
            )
        )
    outcomes.sort(key=lambda one: (-one.share, one.user or "", one.client_id or "", one.kind.value))
    return Result(candidate=plan.candidate, outcomes=outcomes, unknown=plan.unknown, without_limit=plan.without_limit)


def report(answer: Backtest) -> Report:
    """Report the entities that each candidate would have throttled, and those of which that is unknown."""
    past = answer.past
    return Report(
        title="Back-test",
        where=period(past.address, 1_000 * past.begin, 1_000 * past.end),
        headline=[_headline(result) for result in answer.results],
        caveats=list(caveats(answer)),
        blocks=[block for result in answer.results for block in _blocks(result)],
        notes=NOTES,
    )


def _headline(result: Result) -> str:
    throttled = [one for one in result.outcomes if one.is_throttled]
    new = sum(not one.held_back for one in throttled)
    unknown = f"; of {len(result.unknown):,} it is unknown" if result.unknown else ""
    return (
        f"“{shown(result.candidate)}” would have throttled {len(throttled):,} of "
        f"{counted(len(result.outcomes), 'limited load')}, {new:,} of them newly{unknown}."
    )


def caveats(answer: Backtest) -> Iterator[str]:
    """Yield what is not known, one sentence or two each."""
    past, outcomes = answer.past, [one for result in answer.results for one in result.outcomes]
    yield (f"The samples cover {seconds(past.seconds)} of {counted(len(past.nodes), 'node')}, scraped {past.pace}.")
    if any(one.coverage < 1 - LEAST_GAP for one in outcomes):
        yield "≥: samples of a node are missing for a part of the period. What clients used then is unknown."
    if any(one.sight is not Sight.WHOLE for one in outcomes):
        yield (
            "≈ sparse, ≈ bursts, unseen: scrapes saw a part of the load, and may have missed times above the limit: "
            "scrape every 10 s, bursts of less than a minute every 5 s."
        )
    if any(one.held_back for one in outcomes):
        yield HELD_BACK_LOGGED
    yield from past.caveats


_WORDS: Final = {
    Sight.WHOLE: "all seen",
    Sight.SPARSE: "≈ sparse",
    Sight.BURSTS: "≈ bursts",
    Sight.UNSEEN: "unseen",
}


def _blocks(result: Result) -> Iterator[Block]:
    rows = [_row(one) for one in result.outcomes if one.is_throttled]
    yield Rows(
        title=f"Throttled by {shown(result.candidate)}",
        heads=_HEADS,
        rows=rows,
        empty="No sample is above a limit.",
        page_only=_HEADS[-2:-1],
        below="rule",
    )
    names = [(spelled(user, client), spaced(kind.label), why) for kind, user, client, why in result.unknown]
    if names:
        yield Rows(title=f"Unknown for “{shown(result.candidate)}”", heads=("entity", "=quota", "reason"), rows=names)


def _row(one: Outcome) -> Sequence[str]:
    low = one.held_back or one.coverage < 1 - LEAST_GAP
    return (
        spelled(one.user, one.client_id),
        spaced(one.kind.label),
        rate(one.kind, one.limit),
        one.rule,
        lower_bound(seconds(one.evidence.above_s), held_back=low, short=True),
        lower_bound(percent(one.share), held_back=low, short=True),
        seconds(one.evidence.throttled_s),
        shown(one.node),
        _WORDS[one.sight],
    )


def document(answer: Backtest) -> dict[str, Any]:
    """Return all outcomes for programs: durations in seconds, shares as ratios, names as they are."""
    past = answer.past
    return {
        "prometheus": past.address,
        "selector": past.selector,
        "begin": past.begin,
        "end": past.end,
        "candidates": [
            {
                "name": result.candidate,
                "entities": [_values(result, one) for one in result.outcomes],
                "unknown": [
                    {"user": user, "client_id": client_id, "quota_type": kind.label, "reason": reason}
                    for kind, user, client_id, reason in result.unknown
                ],
                "without_limit": result.without_limit,
            }
            for result in answer.results
        ],
        "caveats": list(caveats(answer)),
        "notes": list(NOTES),
    }


def as_csv(answer: Backtest) -> str:
    """Write a row for each candidate, entity and quota type that it limits."""
    return csv_of(_COLUMNS, (_values(result, one) for result in answer.results for one in result.outcomes))


def _values(result: Result, one: Outcome) -> dict[str, Any]:
    return {
        "candidate": result.candidate,
        "user": one.user,
        "client_id": one.client_id,
        "quota_type": one.kind.label,
        "limit": one.limit,
        "rule": one.rule,
        "above_seconds": one.evidence.above_s,
        "active_seconds": one.evidence.active_s,
        "above_share": one.share,
        "node": one.node,
        "throttled_seconds": one.evidence.throttled_s,
        "change": one.change,
        "held_back": one.held_back,
        "sight": one.sight.value,
        "coverage": one.coverage,
    }
