"""Back-test: the clients that candidate quotas would have throttled, by samples of a Prometheus server; its report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Any, Final, TypeAlias

from quotascope.metrics.kafka.entities import QuotaType, spelled
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pages.baseline import HELD_BACK_LOGGED, legend_of_bounds, lower_bound
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
"""Largest number of different limits of a quota type: each takes a query."""
_HEADS: Final = ("entity", "=quota", "#limit", "rule", "#throttled for", "#share", "#throttled then", "node", "samples")
_COLUMNS: Final = (
    *("candidate", "user", "client_id", "quota_type", "limit", "rule"),
    *("above_seconds", "active_seconds", "above_share"),
    *("node", "throttled_seconds", "change", "held_back", "sight", "coverage"),
)
NOTES: Final = (
    ("Throttled is the time for which the rate was above the limit, on the node with most of it. Clients are taken as "
    "they were, not slowed down (open loop); quotascope whatif replays requests."),
    "A load within 5 % of a limit may be on either side: brokers check rates at requests, where they are highest.",
)  # fmt: skip


class TooManyLimits(PipelineError):
    """The candidates have more limits than a server should be asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Effect that a quota type of a candidate would have had on an entity."""

    kind: QuotaType
    user: str | None
    client_id: str | None
    limit: float
    """Limit in Kafka's unit."""
    rule: str
    """The rule that sets the limit, with its level."""
    evidence: Evidence
    """Figures of `node`, but the longest `throttled_s` of any node."""
    node: str
    """Node with the longest time above the limit."""
    sight: Sight
    coverage: float
    """Part of the period with samples, from 0 to 1, of the entity's node with the fewest."""

    @property
    def share(self) -> float:
        """Part of the active time above the limit, from 0 to 1."""
        return min(1.0, self.evidence.above_s / self.evidence.active_s) if self.evidence.active_s else 0.0

    @property
    def held_back(self) -> bool:
        """True if the entity was throttled in the period: without that quota, it would have used more."""
        return self.evidence.throttled_s > 0

    @property
    def is_throttled(self) -> bool:
        """True if samples are above the limit."""
        return self.evidence.above_s > 0

    @property
    def change(self) -> str:
        """
        Change against the period, as a word for programs.

        It is `new` or `throttled` for an entity above the limit, and otherwise `ended` or `none`, depending on whether
        the entity was throttled in the period.
        """
        if self.is_throttled:
            return "throttled" if self.held_back else "new"
        return "ended" if self.held_back else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcomes of one candidate."""

    candidate: str
    outcomes: Sequence[Outcome]
    """Outcomes of all entities that the candidate limits, the largest share above the limit first."""
    unknown: Sequence[_Unknown]
    """Entities whose outcome the samples do not show."""
    without_limit: int
    """Number of pairs of entity and quota type that the candidate does not limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """The outcomes of all candidates over a period."""

    past: Past
    results: Sequence[Result]


_Unknown: TypeAlias = tuple[QuotaType, str | None, str | None, str]
"""Quota type, user and client id of an entity whose outcome is unknown, and the reason."""
_Series: TypeAlias = tuple[QuotaType, RuleShape | None]
"""Series that queries are about: usages of a quota type, added up to entities of a shape, or as brokers measured."""


@dataclass(frozen=True, slots=True)
class _Measure:
    """An entity as a candidate's quota would measure it: a sum of a shape, or the same as brokers measured."""

    entity: Entity
    shape: RuleShape | None

    @property
    def series(self) -> _Series:
        """The series that show its figures."""
        return self.entity[0], self.shape


def backtest(past: Past, candidates: Sequence[Candidate], progress: Progress | None = None) -> Backtest:
    """
    Return for which part of their active time entities were above the limits of candidates.

    Args:
        past: samples.
        candidates: candidates.
        progress: called with the number of queries that are done, and of all of a quota type.

    Raises:
        NoSamples: no client was measured in the period.
        TooManyLimits: the candidates have too many different limits.

    """
    entities = sorted(
        {(series.quota_type, series.user, series.client_id) for series in past.series if not series.is_throttle},
        key=lambda entity: (entity[0].value, *entity[1:]),
    )
    if not entities:
        raise NoSamples(f"{past.address}: no client was measured in this period")
    plans = [_plan(candidate, entities) for candidate in candidates]
    limits: dict[_Series, set[float]] = defaultdict(set)
    for plan in plans:
        for measure, (limit, _) in plan.limits.items():
            limits[measure.series].add(limit)
    _refuse_many(limits)
    evidence = {series: _evidence(past, series, sorted(values), progress) for series, values in limits.items()}
    return Backtest(past=past, results=[_result(past, plan, evidence) for plan in plans])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A candidate's limits for all measured entities."""

    candidate: str
    windows: WindowConfig
    limits: Mapping[_Measure, tuple[float, str]]
    """Limit, and the rule that sets it."""
    unknown: Sequence[_Unknown]
    without_limit: int


def _plan(candidate: Candidate, entities: Sequence[tuple[QuotaType, str, str]]) -> _Plan:
    """Resolve a candidate's limits for all measured entities by Kafka's precedence."""
    limits: dict[_Measure, tuple[float, str]] = {}
    unknown: dict[_Unknown, None] = {}
    unlimited = 0
    tables = candidate.tables()
    names_by_kind: dict[QuotaType, set[tuple[str, str]]] = {kind: set() for kind in tables}
    for kind, user, client_id in entities:
        names_by_kind[kind].add((user, client_id))
    tags_of = {kind: TagsOf(table, names_by_kind[kind]) for kind, table in tables.items()}
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


def _refuse_many(limits: Mapping[_Series, set[float]]) -> None:
    """Raise `TooManyLimits` if the candidates have too many different limits of a quota type."""
    counts: dict[QuotaType, int] = defaultdict(int)
    for (kind, _), values in limits.items():
        counts[kind] += len(values)
    for kind, count in counts.items():
        if count > _MOST_LIMITS:
            raise TooManyLimits(
                f"the candidates have {count:,} different limits of {spaced(kind.label)}, and each is a query: at most "
                f"{_MOST_LIMITS} are asked for; take fewer candidates, or `quotascope whatif` over a usage history"
            )


def _evidence(
    past: Past, series: _Series, limits: Sequence[float], progress: Progress | None
) -> dict[float, dict[Entity, dict[str, Evidence]]]:
    """
    Return the evidence by limit, entity and node.

    The evidence of a limit has only the time above it. All figures that do not depend on the limit are under limit 0.
    """
    kind, shape = series
    past = replace(past, series=[one for one in past.series if one.quota_type is kind])
    limit_by_query = {f"above {limit!r}": limit for limit in limits}
    queries: dict[str, promql.Query] = {
        "active_s": promql.active,
        "changes": promql.changes,
        "seen_s": promql.seen,
        **{name: partial(promql.active, above=limit) for name, limit in limit_by_query.items()},
    }
    common, by_limit = [], defaultdict(list)
    for name, target, value in answered(past, queries, shape=shape, progress=progress):
        if name in limit_by_query:  # a number of steps: `answered` only converts queries that are named as a figure
            by_limit[limit_by_query[name]].append(("above_s", target, value * past.step_s))
        else:
            common.append((name, target, value))
    common += answered(past, {"throttled_s": promql.active}, throttles=True, shape=shape, progress=progress)
    return {0.0: by_node(common), **{limit: by_node(figures) for limit, figures in by_limit.items()}}


def _result(
    past: Past,
    plan: _Plan,
    evidence: Mapping[_Series, Mapping[float, Mapping[Entity, Mapping[str, Evidence]]]],
) -> Result:
    """Return the outcomes of one candidate; `evidence` is by series, and then as `_evidence` returns it."""
    outcomes = []
    for measure, (limit, rule) in plan.limits.items():
        by_limit = evidence[measure.series]
        nodes = by_limit[0.0].get(measure.entity, {})
        if not nodes:
            continue
        above = by_limit.get(limit, {}).get(measure.entity, {})
        above_s = {node: above[node].above_s if node in above else 0.0 for node in nodes}
        worst_node = max(nodes, key=lambda node: (above_s[node], nodes[node].active_s))
        figures = nodes[worst_node].maximum(above.get(worst_node, Evidence()))
        figures.throttled_s = max(of_node.throttled_s for of_node in nodes.values())
        seen = {node: of_node for node, of_node in nodes.items() if of_node.seen_s}
        sights = {of_node.sight(past.interval_of(node), plan.windows) for node, of_node in seen.items()}
        kind, user, client_id = measure.entity
        outcomes.append(
            Outcome(
                kind=kind,
                user=user,
                client_id=client_id,
                limit=limit,
                rule=rule,
                evidence=figures,
                node=worst_node,
                sight=worst(sights),
                coverage=min((past.coverage(node) for node in seen), default=0.0),
            )
        )
    outcomes.sort(key=lambda outcome: (-outcome.share, outcome.user or "", outcome.client_id or "", outcome.kind.value))
    return Result(candidate=plan.candidate, outcomes=outcomes, unknown=plan.unknown, without_limit=plan.without_limit)


def report(answer: Backtest) -> Report:
    """Report the entities that candidates would have throttled, and the entities for which that is unknown."""
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
    """Return a sentence with the number of entities that a candidate would have throttled."""
    throttled = [outcome for outcome in result.outcomes if outcome.is_throttled]
    new = sum(not outcome.held_back for outcome in throttled)
    unknown = f"; of {len(result.unknown):,} it is unknown" if result.unknown else ""
    return (
        f"“{shown(result.candidate)}” would have throttled {len(throttled):,} of "
        f"{counted(len(result.outcomes), 'limited load')}, {new:,} of them newly{unknown}."
    )


def caveats(answer: Backtest) -> Iterator[str]:
    """Yield the period, and the reasons why outcomes may be wrong, a sentence or two each."""
    past, outcomes = answer.past, [outcome for result in answer.results for outcome in result.outcomes]
    yield (f"The samples cover {seconds(past.seconds)} of {counted(len(past.nodes), 'node')}, scraped {past.pace}.")
    reasons = {
        "samples of a node are missing for a part of the period, and what clients used then is unknown": any(
            outcome.coverage < 1 - LEAST_GAP for outcome in outcomes
        ),
        HELD_BACK_LOGGED: any(outcome.held_back for outcome in outcomes),
    }
    yield from legend_of_bounds(reason for reason, is_there in reasons.items() if is_there)
    if any(outcome.sight is not Sight.WHOLE for outcome in outcomes):
        yield (
            "≈ sparse, ≈ bursts, unseen: scrapes saw a part of the load, and may have missed times above the limit: "
            "scrape every 10 s, bursts of less than a minute every 5 s."
        )
    yield from past.caveats


_WORDS: Final = {
    Sight.WHOLE: "all seen",
    Sight.SPARSE: "≈ sparse",
    Sight.BURSTS: "≈ bursts",
    Sight.UNSEEN: "unseen",
}


def _blocks(result: Result) -> Iterator[Block]:
    """Yield the table of the throttled entities of a candidate, and of those whose outcome is unknown, if any."""
    rows = [_row(outcome) for outcome in result.outcomes if outcome.is_throttled]
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


def _row(outcome: Outcome) -> Sequence[str]:
    """Return the cells of an outcome, in the order of `_HEADS`."""
    may_be_low = outcome.held_back or outcome.coverage < 1 - LEAST_GAP
    return (
        spelled(outcome.user, outcome.client_id),
        spaced(outcome.kind.label),
        rate(outcome.kind, outcome.limit),
        outcome.rule,
        lower_bound(seconds(outcome.evidence.above_s), held_back=may_be_low, short=True),
        lower_bound(percent(outcome.share), held_back=may_be_low, short=True),
        seconds(outcome.evidence.throttled_s),
        shown(outcome.node),
        _WORDS[outcome.sight],
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
                "entities": [_values(result, outcome) for outcome in result.outcomes],
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
    """Return CSV with a row for each outcome of each candidate."""
    return csv_of(_COLUMNS, (_values(result, outcome) for result in answer.results for outcome in result.outcomes))


def _values(result: Result, outcome: Outcome) -> dict[str, Any]:
    """Return an outcome by the names of `_COLUMNS`."""
    return {
        "candidate": result.candidate,
        "user": outcome.user,
        "client_id": outcome.client_id,
        "quota_type": outcome.kind.label,
        "limit": outcome.limit,
        "rule": outcome.rule,
        "above_seconds": outcome.evidence.above_s,
        "active_seconds": outcome.evidence.active_s,
        "above_share": outcome.share,
        "node": outcome.node,
        "throttled_seconds": outcome.evidence.throttled_s,
        "change": outcome.change,
        "held_back": outcome.held_back,
        "sight": outcome.sight.value,
        "coverage": outcome.coverage,
    }
