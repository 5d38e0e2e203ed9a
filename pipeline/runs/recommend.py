"""Limits recommended from a history on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, cast

from quotascope.metrics import QuotaType
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

from ..blame.benefit import benefit_of
from ..history import History
from ..rates import span_ms, usages
from ..recommend.advice import NOW, RECOMMENDED, Advice, hits, protecting, recommendations, target
from ..recommend.coverage import COLUMNS, RequestTally, coverage_of, tally
from ..recommend.need import Need, needs
from ..recommend.policy import ClusterWindows, Policy, RuleShape
from ..recommend.protect import Answer, limited_to, protect
from ..releases import followed_by
from ..replay import Mode, ReplaySettings
from ..replay.frame import NEEDED
from ..report.recommend_page import charted, recommend_page
from ..table import File, Progress, Table
from ..table.table import Run, run_here
from .engine import Engine, parts_of, run_for, whole_users
from .whatif import replayed

if TYPE_CHECKING:
    from ..spark.run import SparkRun


def advise(
    folder: str,
    policy: Policy,
    *,
    now: QuotaSet | None = None,
    windows: ClusterWindows | None = None,
    engine: Engine = Engine.AUTO,
    progress: Progress | None = None,
) -> Advice:
    """
    The lowest limits that keep a policy, and what setting them would mean. Changes nothing anywhere.

    Args:
        folder: of the history, as `quotascope ingest` has made it.
        policy: what limits have to keep.
        now: the quotas as configured, if they are known.
        windows: of the cluster's quotas, and its release; Kafka's defaults and the release that the logs name, else the newest, unless given.
        engine: what does the work.
        progress: called with how much is done, and of how much.

    Raises:
        NoHistory, EmptyHistory: there is no history, or nothing in it.
        ShortLog: it covers less than a day, and the policy does not allow that.

    """
    opened = History.open(folder)
    history, span = opened.detail, span_ms(opened)
    run = run_for(engine, history, "search in buckets")
    # counted bucket by bucket: the counts add up, even where an entity's users are in several
    counted = RequestTally()
    for part in run(partial(_tally_part, history, policy.shape), parts_of(history, across_users=False)):
        counted.add(part)
    coverage = coverage_of(counted, span, policy.zone)
    if not policy.short_log:
        coverage.check(folder)
    windows = windows or ClusterWindows()
    kafka = followed_by(folder, history, windows.followed)
    windows = replace(windows, followed=kafka)
    settings = ReplaySettings(release=kafka.release)
    protection = None
    if policy.protect is None:
        made = recommendations(_needs(history, policy, windows, run, progress), policy)
    else:
        limited = partial(limited_to, shape=policy.shape, windows=windows)
        queues = partial(
            benefit_of, folder, mode=Mode.CLOSED_LOOP, run=run, threads=policy.io_threads, settings=settings
        )
        protection = protect(policy.protect, policy.floors[QuotaType.REQUEST], limited, queues)
        made = []
        if protection.answer is Answer.REACHED and protection.level is not None:
            results = replayed(history, [limited(protection.level)], Mode.OPEN_LOOP, run, settings=settings)
            made = protecting(results, policy, protection)
    tried = {RECOMMENDED: target(now, made)} | ({} if now is None else {NOW: now})
    candidates = [
        Candidate(name=name, quotas=quotas, windows=windows.client, controller_windows=windows.controller)
        for name, quotas in tried.items()
    ]
    results = replayed(history, candidates, Mode.OPEN_LOOP, run, settings=settings)
    return Advice(
        source=folder,
        coverage=coverage,
        policy=policy,
        kafka=kafka,
        now=now,
        recommended=made,
        hits=hits(results, now_known=now is not None),
        protection=protection,
    )


def _tally_part(table: Table, shape: RuleShape, files: Sequence[File]) -> RequestTally:
    """The count of some files, in the memory of a batch of rows."""
    batches = (table.batches([file], COLUMNS) for file in files)
    return tally(chain.from_iterable(batches), shape)


def _needs(
    history: Table, policy: Policy, windows: ClusterWindows, run: Run, progress: Progress | None
) -> Iterator[Need]:
    across_users = policy.shape is RuleShape.CLIENT
    if across_users and run is not run_here:
        from ..spark.shuffled import needs_of_clients  # noqa: PLC0415 - brings Spark in

        on_spark = cast("SparkRun", run)
        yield from needs_of_clients(on_spark, history, policy, windows, progress)
        return
    parts = parts_of(history, across_users=across_users)
    work = partial(_needs_part, history, policy, windows)
    for part in run(work, parts, progress):
        yield from part


def _needs_part(table: Table, policy: Policy, windows: ClusterWindows, files: Sequence[File]) -> list[Need]:
    """What the entities in some files need; the files hold whole groups."""
    across_users = policy.shape is RuleShape.CLIENT  # any two users may share one
    users = whole_users(table, files, NEEDED, across_users=across_users)
    return [need for rows in users for need in needs(rows, policy, windows)]


def page(advice: Advice, commands: Sequence[str]) -> str:
    """The report on a recommendation, with the usage of the entities with most requests."""
    history = History.open(advice.source)
    groups = [each.group for each in charted(advice)]
    drawn = usages(history, groups, advice.span_ms, advice.policy.zone)
    return recommend_page(advice, drawn, commands)
