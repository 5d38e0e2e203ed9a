"""A what-if replay of a history on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from quotascope.quotas.candidates import Candidate

from ..blame.benefit import benefit_of
from ..history import History
from ..rates import GroupUsage, LimitGroup, span_ms, usages
from ..releases import Followed, followed_by
from ..replay import RESULTS, Mode, ReplaySettings, replay
from ..replay.frame import NEEDED
from ..replay.plan import CandidateRules
from ..report.whatif import CHARTS, ReplaySummary, summary_of
from ..table import File, Progress, Table
from ..table.table import Run, run_here
from .engine import Engine, parts_of, run_for, whole_users

if TYPE_CHECKING:
    from ..spark.run import SparkRun


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a replay answers, and what its page draws."""

    results: pa.Table
    """`quotascope.pipeline.replay.RESULTS`"""
    summary: ReplaySummary
    usages: Mapping[LimitGroup, GroupUsage]


def what_if(  # noqa: PLR0913 - most by name
    folder: str,
    candidates: Sequence[Candidate],
    mode: Mode,
    *,
    engine: Engine = Engine.AUTO,
    zone: tzinfo = UTC,
    progress: Progress | None = None,
    kafka: Followed | None = None,
    decided: pa.Table | None = None,
    threads: int | None = None,
) -> WhatIf:
    """
    Replay a history under candidates.

    Args:
        folder: of the history, as `quotascope ingest` has made it.
        candidates: quotas to try, each under another name.
        mode: whether throttled clients send later.
        engine: what does the work.
        zone: time zone of the charts.
        progress: called with how much is done, and of how much.
        kafka: the release that throttle times follow; the one that the logs name unless given, else the newest.
        decided: results that are there already (`shadow.decided_by`), instead of a replay; waits are unknown then.
        threads: handler threads of each broker (`num.io.threads`); estimated from the log unless given.

    Raises:
        NoHistory: there is none.
        EmptyHistory: there is nothing in it.

    """
    history = History.open(folder)
    span = span_ms(history)
    kafka = followed_by(folder, history.detail, kafka or Followed())
    results, benefit = decided, None
    if results is None:
        run = run_for(engine, history.detail, "replay of buckets")
        settings = ReplaySettings(release=kafka.release)
        results = replayed(history.detail, candidates, mode, run, progress, settings)
        benefit = benefit_of(folder, candidates, mode, run, threads=threads, settings=settings)
    names = [candidate.name for candidate in candidates]
    summary = summary_of(results, names, folder, span, mode, kafka, benefit=benefit)
    groups = [each.group for each in summary.groups[:CHARTS]]
    drawn = usages(history, groups, span, zone)
    return WhatIf(results=results, summary=summary, usages=drawn)


def replayed(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    run: Run,
    progress: Progress | None = None,
    settings: ReplaySettings | None = None,
) -> pa.Table:
    """
    The results (`quotascope.pipeline.replay.RESULTS`) of a replay.

    Users of different buckets share nothing, and are replayed apart, unless some candidate has rules for client-ids alone.
    """
    across_users = CandidateRules(candidates).across_users
    if across_users and run is not run_here:
        from ..spark.shuffled import replay_shared  # noqa: PLC0415 - brings Spark in

        on_spark = cast("SparkRun", run)
        return replay_shared(on_spark, history, candidates, mode, settings, progress)
    parts = parts_of(history, across_users=across_users)
    work = partial(_replay_part, history, tuple(candidates), mode, settings)
    results = run(work, parts, progress)
    return pa.concat_tables([RESULTS.empty_table(), *results])


def _replay_part(
    history: Table, candidates: Sequence[Candidate], mode: Mode, settings: ReplaySettings | None, files: Sequence[File]
) -> pa.Table:
    """The results of some files: all requests that may share a limit with one of theirs."""
    across_users = CandidateRules(candidates).across_users
    users = whole_users(history, files, NEEDED, across_users=across_users)
    return pa.concat_tables([replay(rows, candidates, mode, settings) for rows in users])
