"""Limits recommended from a history on disk, and their report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from math import inf
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics.kafka.entities import QuotaType, spelled
from quotascope.pages.baseline import HELD_BACK_LOGGED, legend_of_bounds, lower_bound
from quotascope.pages.report import Block, Cell, Chart, Lines, Mark, Report, Rows, csv_of
from quotascope.pages.words import counted, moment, percent, period, seconds, shown, spaced
from quotascope.quotas import Commands, QuotaSet, RuleChange, number_text
from quotascope.quotas.candidates import Candidate

from ..blame.benefit import benefit_of
from ..columns import GroupKey
from ..engine import Engine
from ..history import History
from ..losses import MOST_MISSING, losses_of
from ..rates import HOURS, GroupUsage, LimitGroup, hour_name, rate, span_ms, units_legend, usages
from ..recommend.advice import (
    NOW,
    RECOMMENDED,
    Advice,
    Hit,
    Recommendation,
    hits,
    protecting,
    recommendations,
    target,
    without_overruled,
    without_system_users,
)
from ..recommend.coverage import COLUMNS, Logged, RequestTally, coverage_of, tally
from ..recommend.need import Need, needs
from ..recommend.policy import ClusterWindows, Policy, QueueTarget, RuleShape
from ..recommend.protect import Answer, Protection, limited_to, protect
from ..releases import followed_by
from ..replay import Mode, ReplaySettings
from ..replay.frame import NEEDED
from ..table import File, Progress, Table
from ..table.users import whole_users
from ..usage_charts import CHART_NOTES, CHARTS, usage_chart
from .engine import EngineChoice, engine_for
from .whatif import replayed

_MOST: Final = 40
"""Number of limits that a terminal shows."""
_COLORS: Final = {RECOMMENDED: 0, NOW: 1}
_HEADS: Final = (
    *("entity", "=quota", "#now", "#recommended", "#lowest", "=peak hour", "broker", "#requests"),
    "#throttled while logged",
)
_HIT_HEADS: Final = ("entity", "=quota", "#limit", "#throttled for", "#share", "#longest", "#throttled now")
_OF_SHARES: Final = (
    "Each broker enforces limits separately: a recommended limit is what the broker with the highest demand needs.",
    "The search for the lowest limit takes requests as logged, not slowed down (open loop).",
)
_OF_HITS: Final = "The throttled clients are those of a replay of all quotas together, with Kafka's own precedence."
_NOT_KNOWN: Final = "The configured quotas are unknown here, so that every limit counts as new."
_NO_COMMAND: Final = ("# nothing to change", "# no command: the log lacks too many requests")
"""Lines instead of commands, without and with refused ones."""
_COLUMNS: Final = (
    "user",
    "client_id",
    "quota_type",
    "key",
    "now",
    "now_state",
    "now_rule",
    "limit",
    "lowest",
    "broker",
    "hour_of_week",
    "requests",
    "requests_of_unknown_size",
    "logged_requests",
    "logged_throttled",
    "logged_unknown",
    "held_back",
    "missing_share",
    "refused",
)


def advise(
    folder: str,
    policy: Policy,
    *,
    configured: QuotaSet | None = None,
    windows: ClusterWindows | None = None,
    engine: EngineChoice = EngineChoice.AUTO,
    progress: Progress | None = None,
) -> Advice:
    """
    Return the lowest limits that keep a policy, and the consequences of setting them. Nothing is changed.

    Args:
        folder: folder of the history, as `quotascope ingest` has made it.
        policy: policy that the limits keep.
        configured: quotas as configured, if they are known.
        windows: windows and release of the cluster's quotas; by default Kafka's windows, and the release that the logs
            name, else the newest.
        engine: engine that does the work.
        progress: called with the amount of done work, and of all.

    Raises:
        NoHistory, EmptyHistory: there is no history, or it is empty.
        ShortLog: it covers less than a day, and the policy does not allow that.

    """
    opened = History.open(folder)
    history, span = opened.detail, span_ms(opened)
    losses = losses_of(folder)
    workers = engine_for(engine, history, "search in shards")
    # the counts of shards add up, also for an entity with users in several shards
    counted = RequestTally()
    for part in workers.map(partial(_tally_part, history, policy.shape), list(history.shards().values())):
        counted.add(part)
    coverage = coverage_of(counted, span, policy.zone)
    if not policy.short_log:
        coverage.check(folder)
    windows = windows or ClusterWindows()
    kafka = followed_by(folder, history, windows.followed)
    windows = replace(windows, followed=kafka)
    settings = ReplaySettings(release=kafka.release, releases=kafka.by_broker)
    protection = None
    if policy.protect is None:
        limits = recommendations(needs_of(history, policy, windows, workers, progress), policy)
    else:
        protection, limits = _protect(folder, history, policy, policy.protect, windows, workers)
    limits, system_users = without_system_users(limits, counted.brokers)
    limits, overruled = without_overruled(configured, limits)
    quotas_by_name = {RECOMMENDED: target(configured, limits)}
    if configured is not None:
        quotas_by_name[NOW] = configured
    candidates = [
        Candidate(name=name, quotas=quotas, windows=windows.client, controller_windows=windows.controller)
        for name, quotas in quotas_by_name.items()
    ]
    results = replayed(history, candidates, Mode.OPEN_LOOP, workers, settings=settings)
    return Advice(
        source=folder,
        coverage=coverage,
        policy=policy,
        kafka=kafka,
        configured=configured,
        recommended=limits,
        hits=hits(results, configured_known=configured is not None),
        losses=losses,
        protection=protection,
        left_out=(*system_users, *overruled),
    )


def _protect(
    folder: str,
    history: Table,
    policy: Policy,
    queue_target: QueueTarget,
    windows: ClusterWindows,
    workers: Engine,
) -> tuple[Protection, list[Recommendation]]:
    """Search for the level of request quotas that keeps a target; return the result, and the limits if it needs any."""
    settings = ReplaySettings(release=windows.followed.release, releases=windows.followed.by_broker)
    limited = partial(limited_to, shape=policy.shape, windows=windows)
    queues = partial(
        benefit_of,
        folder,
        mode=Mode.CLOSED_LOOP,
        map_items=workers.map,
        threads=policy.io_threads,
        settings=settings,
    )
    protection = protect(queue_target, policy.floors[QuotaType.REQUEST], limited, queues)
    if protection.answer is not Answer.REACHED or protection.level is None:
        return protection, []
    results = replayed(history, [limited(protection.level)], Mode.OPEN_LOOP, workers, settings=settings)
    return protection, protecting(results, policy, protection)


def _tally_part(table: Table, shape: RuleShape, files: Sequence[File]) -> RequestTally:
    """Count the requests in some files; one batch of rows is in memory at a time."""
    batches = (table.batches([file], COLUMNS) for file in files)
    return tally(chain.from_iterable(batches), shape)


def needs_of(
    history: Table, policy: Policy, windows: ClusterWindows, engine: Engine, progress: Progress | None = None
) -> Iterator[Need]:
    """Return the needs of all entities of the policy's shape in a history."""
    work = partial(_needs_of_rows, policy, windows)
    if policy.shape is RuleShape.CLIENT:  # users of any shards may share a client-id
        key, doing = GroupKey(columns=("client_id",)), "search for the limits of client-ids"
        answers = engine.grouped(history, NEEDED, key, work, doing, progress)
    else:
        answers = engine.map(partial(_needs_of_shard, history, work), list(history.shards().values()), progress)
    return chain.from_iterable(answers)


def _needs_of_shard(table: Table, work: Callable[[pa.Table], list[Need]], files: Sequence[File]) -> list[Need]:
    """Return the needs of the entities in the files of a shard."""
    return list(chain.from_iterable(map(work, whole_users(table, files, NEEDED))))


def _needs_of_rows(policy: Policy, windows: ClusterWindows, rows: pa.Table) -> list[Need]:
    """Return the needs of the entities of some rows, with the rows as the last argument."""
    return list(needs(rows, policy, windows))


def usages_of(advice: Advice) -> Mapping[LimitGroup, GroupUsage]:
    """Return the usage of the entities that the page draws (`charted`)."""
    return usages(History.open(advice.source), list(charted(advice)), advice.span_ms, advice.policy.zone)


def report(advice: Advice, commands: Commands, drawn: Mapping[LimitGroup, GroupUsage] | None = None) -> Report:
    """
    Report the limits, the changes, the clients that they would throttle, and the commands.

    Args:
        advice: the limits.
        commands: commands that would set the limits.
        drawn: usage of the groups of `charted`.

    """
    return Report(
        title="Recommended quotas",
        where=period(advice.source, *advice.span_ms, advice.policy.zone),
        headline=(headline(advice),),
        caveats=caveats(advice),
        blocks=list(_blocks(advice, commands, drawn or {})),
        notes=notes(advice),
        chart_notes=CHART_NOTES if advice.recommended else (),
    )


def _blocks(advice: Advice, commands: Commands, drawn: Mapping[LimitGroup, GroupUsage]) -> Iterator[Block]:
    """Yield the limits, the changes, the throttled clients, the charts, and the commands."""
    if advice.recommended:
        rows = [_row(recommendation, advice) for recommendation in advice.recommended]
        legend = units_legend(recommendation.kind for recommendation in advice.recommended)
        yield Rows(title="Limits", heads=_HEADS, rows=rows, legend=legend, page_only=_HEADS[-3:], terminal_rows=_MOST)
    if advice.configured is not None:
        changes = [(change.entity.rule, change_text(change)) for change in advice.changes]
        yield Rows(
            title="What would change",
            heads=("entity", "change"),
            rows=changes,
            empty="nothing",
            terminal_rows=len(changes),
        )
    if advice.recommended:
        yield Rows(
            title="Throttled clients",
            heads=_HIT_HEADS,
            rows=[
                (spelled(hit.user, hit.client_id), spaced(hit.kind.label), rate(hit.kind, hit.limit), *hit_figures(hit))
                for hit in advice.hits
            ],
            empty=verdict(advice),
        )
        yield Chart(title="Usage against limits", elements=())
        for group, limits in charted(advice).items():
            if group in drawn:
                yield usage_chart(group, limits, drawn[group], _COLORS, advice.policy.zone)
    lines = commands.lines or (_NO_COMMAND[bool(advice.refused)],)
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    yield Lines(title="Commands, none of which was run", lines=(*lines, *left_out), copied=True)


def change_text(change: RuleChange) -> str:
    """Return a change with its mark: `+` for a set quota, `-` for a removed one, `~` for a changed one."""
    old, new = ("" if value is None else number_text(value) for value in (change.old, change.new))
    if change.old is None:
        return f"+ {change.key} {new}"
    if change.new is None:
        return f"- {change.key} {old}"
    return f"~ {change.key} {old} -> {new}"


def charted(advice: Advice) -> dict[LimitGroup, dict[str, float]]:
    """Return the limits of the groups that are drawn, which have the most requests, by candidate."""
    groups = {}
    by_requests = sorted(advice.recommended, key=lambda recommendation: recommendation.requests, reverse=True)
    for recommendation in by_requests[:CHARTS]:
        limits = {RECOMMENDED: recommendation.limit}
        present = advice.configured_of(recommendation)
        if present is not None and present != inf:
            limits[NOW] = present
        groups[LimitGroup(recommendation.kind, *recommendation.names)] = limits
    return groups


def headline(advice: Advice) -> str:
    """Return a sentence with the number of limits and their effect."""
    policy = advice.policy
    limits = counted(len(advice.recommended), "limit")
    hit = counted(len(advice.hits), "client")
    if advice.protection is not None:
        replayed = f" The replay throttles {hit} at {limits}." if advice.hits else ""
        return f"{advice.protection.headline}{replayed}"
    return (
        f"{limits}, chosen to throttle an entity for at most {percent(policy.share)} of its time, plus "
        f"{percent(policy.headroom)} of headroom; the replay throttles {hit}."
    )


def caveats(advice: Advice) -> Sequence[str]:
    """Return the basis of the limits, and the reasons why they may be too low, a sentence or two each."""
    coverage, zone = advice.coverage, advice.policy.zone
    begin, end = (moment(time, zone) for time in coverage.span_ms)
    logged = coverage.logged
    silent = f"; for {logged.unknown:,} more it is unknown" if logged.unknown else ""
    made_of = (
        f"The log covers {seconds(coverage.period_ms / 1_000)} ({begin} to {end}) with requests in "
        f"{coverage.hours_of_week} of the {HOURS} hours of a week; {logged.throttled:,} of {logged.known:,} requests "
        f"({_share(logged)}) were throttled while it was written{silent}."
    )
    sentences = [made_of, *advice.losses.notes, *(advice.protection.notes if advice.protection else ())]
    if coverage.short:
        sentences.append("That is less than a day of log: hours that are not in it may need more.")
    reasons = {
        HELD_BACK_LOGGED: advice.held_back,
        "requests are missing": advice.refused,
        "the log lacks the size of some requests (of throttled Fetches, and the number of partitions of controller "
        "mutations, which quotascope ingest --topics takes)": any(
            recommendation.unsized for recommendation in advice.recommended
        ),
    }
    sentences += legend_of_bounds(reason for reason, is_there in reasons.items() if is_there)
    if advice.held_back:
        sentences.append(
            f"{advice.held_back:,} of {counted(len(advice.recommended), 'limit')} are of entities that were throttled "
            "while the log was written, and may be too low."
        )
    if advice.refused:
        sentences.append(
            f"Of {counted(len(advice.refused), 'limit')} no command is made, as more than {percent(MOST_MISSING)} of "
            "the requests are missing: mend what loses lines on their way, and log again."
        )
    return sentences


def verdict(advice: Advice) -> str:
    """Return the sentence for a replay without a throttled client."""
    if advice.held_back:
        return (
            "No client would be throttled in the replay, but the log has only what clients sent "
            "while they were throttled."
        )
    return "No client would be throttled in the replay."


def notes(advice: Advice) -> Sequence[str]:
    """Return notes for readers of the figures, one sentence each."""
    return (
        "Nothing was applied.",
        *(_OF_SHARES if advice.protection is None else ()),
        *((_OF_HITS,) if advice.recommended else ()),
        advice.kafka.note_of(overflows=bool(advice.hits)),
        *((_NOT_KNOWN,) if advice.configured is None else ()),
    )


def configured(advice: Advice, recommendation: Recommendation) -> str:
    """
    Return the configured quota of a limit's entity and key as text.

    Without one, return the limit and the rule that applies instead, or a word for its state.
    """
    present = advice.configured_of(recommendation)
    if present is not None and present != inf:
        return rate(recommendation.kind, present)
    decision = advice.applies(recommendation) if present is None else None
    if decision is None or decision.entity is None:
        return advice.state(present)
    bound = decision.bound
    value = "unlimited" if bound is None or bound == inf else rate(recommendation.kind, bound)
    return f"{value} by {decision.entity.rule}"


def limit(advice: Advice, recommendation: Recommendation) -> str:
    """
    Return the recommended limit as text.

    It is marked as a lower bound if the entity was throttled while logged, or a part of its demand is unknown.
    """
    coarse = "≈ " if advice.losses.coarse else ""
    may_be_low = (
        recommendation.unsized
        or advice.losses.incomplete(*recommendation.names)
        or advice.logged(recommendation).throttled
    )
    return lower_bound(
        f"{coarse}{rate(recommendation.kind, recommendation.limit)}", held_back=bool(may_be_low), short=True
    )


def peak_hour(recommendation: Recommendation) -> str:
    """Return the hour of the week with the highest demand."""
    return "any hour" if recommendation.hour is None else hour_name(recommendation.hour)


def hit_figures(hit: Hit) -> tuple[str, ...]:
    """
    Return four figures of a client as texts.

    They are its throttled time, that as a share of its active time, the longest throttle time of a request, and its
    throttled time under the configured quotas.
    """
    muted_now_ms = hit.muted_now_ms
    figures = seconds(hit.muted_ms / 1_000), percent(hit.share), seconds(hit.longest_ms / 1_000)
    return (
        *(lower_bound(figure, held_back=hit.held_back, short=True) for figure in figures),
        "unknown" if muted_now_ms is None else seconds(muted_now_ms / 1_000),
    )


def _row(recommendation: Recommendation, advice: Advice) -> Sequence[str | Cell]:
    """Return the cells of a limit, in the order of `_HEADS`."""
    present = advice.configured_of(recommendation)
    recommended: str | Cell = limit(advice, recommendation)
    if present is not None and present != recommendation.limit:
        is_higher = recommendation.limit > present
        recommended = Cell(f"{'▲' if is_higher else '▼'} {recommended}", Mark.UP if is_higher else Mark.DOWN)
    return (
        spelled(*recommendation.names),
        spaced(recommendation.kind.label),
        configured(advice, recommendation),
        recommended,
        rate(recommendation.kind, recommendation.lowest),
        peak_hour(recommendation).replace(" ", "\N{NO-BREAK SPACE}"),
        shown(recommendation.broker),
        f"{recommendation.requests:,}",
        _share(advice.logged(recommendation)),
    )


def _share(logged: Logged) -> str:
    """Return the throttled share of logged requests as text."""
    return "unknown" if logged.share is None else percent(logged.share)


def as_csv(advice: Advice) -> str:
    """Return CSV with a row for each limit."""
    return csv_of(_COLUMNS, (_values(recommendation, advice) for recommendation in advice.recommended))


def document(advice: Advice, commands: Commands) -> dict[str, Any]:
    """
    Return the whole recommendation for programs.

    Durations are ms, shares ratios, hours of the week counted from Monday 00h; a quota may be infinite. Names
    are as they are.
    """
    begin, end = advice.span_ms
    coverage, policy = advice.coverage, advice.policy
    return {
        "history": advice.source,
        "begin_ms": begin,
        "end_ms": end,
        "kafka": advice.kafka.values(),
        "coverage": {
            "period_ms": coverage.period_ms,
            "hours_of_week_seen": coverage.hours_of_week,
            "hours_of_week": HOURS,
            "hours_seen": coverage.clock_hours,
            "less_than_a_day": coverage.short,
            "requests": coverage.logged.requests,
            "throttled_requests": coverage.logged.throttled,
            "requests_without_throttle_time": coverage.logged.unknown,
            "throttled_share": coverage.logged.share,
            "limits_held_back": advice.held_back,
        },
        "policy": {
            "share": policy.share,
            "headroom": policy.headroom,
            "shape": policy.shape.value,
            "by_hour": policy.by_hour,
            "zone": str(policy.zone),
            "floors": {kind.label: floor for kind, floor in policy.floors.items()},
        },
        "protection": advice.protection.values() if advice.protection else None,
        "recommended": [_values(recommendation, advice) for recommendation in advice.recommended],
        "changes": [
            {
                "entity": str(change.entity),
                "key": change.key,
                "old": change.old,
                "old_state": advice.state(change.old),
                "new": change.new,
            }
            for change in advice.changes
        ],
        "hits": [{**asdict(hit), "kind": hit.kind.label} for hit in advice.hits],
        "losses": advice.losses.values(),
        "commands": commands.lines,
        "left_out": commands.left_out,
    }


def _values(recommendation: Recommendation, advice: Advice) -> dict[str, Any]:
    """Return a limit by the names of `_COLUMNS`."""
    logged, present, applies = (
        advice.logged(recommendation),
        advice.configured_of(recommendation),
        advice.applies(recommendation),
    )
    return {
        "user": recommendation.entity.user,
        "client_id": recommendation.entity.client_id,
        "quota_type": recommendation.kind.label,
        "key": recommendation.key,
        "now": present,
        "now_state": advice.state(present),
        "now_rule": None if applies is None or applies.entity is None else applies.entity.rule,
        "limit": recommendation.limit,
        "lowest": recommendation.lowest,
        "broker": recommendation.broker,
        "hour_of_week": recommendation.hour,
        "requests": recommendation.requests,
        "requests_of_unknown_size": recommendation.unsized,
        "logged_requests": logged.requests,
        "logged_throttled": logged.throttled,
        "logged_unknown": logged.unknown,
        "held_back": logged.throttled > 0,
        "missing_share": advice.losses.share(*recommendation.names),
        "refused": advice.losses.too_many(*recommendation.names),
    }
