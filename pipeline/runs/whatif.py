"""A what-if replay of a history on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

import pyarrow as pa

from ..candidates import Candidate
from ..followed import Followed, followed_by
from ..history.store import History
from ..report.account import Account, account_of
from ..report.rollups import Drawn
from ..report.summary import Group
from ..report.whatif_page import CHARTS
from ..whatif.mode import Mode, Settings
from .engine import MOST_LOCAL_ROWS, Engine, chosen, run_of
from .parts import Progress
from .replaying import replayed
from .usages import rows_of, span_ms, usages


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a replay answers, and what its page draws."""

    results: pa.Table
    """`quotascope.pipeline.whatif.results.RESULTS`"""
    account: Account
    usages: Mapping[Group, Drawn]


def what_if(  # noqa: PLR0913 - most by name
    folder: str,
    candidates: Sequence[Candidate],
    mode: Mode,
    *,
    engine: Engine = Engine.AUTO,
    zone: tzinfo = UTC,
    progress: Progress | None = None,
    kafka: Followed | None = None,
) -> WhatIf:
    """
    Replay a history under candidates.

    Args:
        folder: of the history, as `quotascope ingest` has made it.
        candidates: quotas to try, each under another name.
        mode: whether throttled clients come later.
        engine: who does the work.
        zone: whose hours and weekdays are drawn.
        progress: is told how much is done, and of how much.
        kafka: the release whose throttle times are followed; the one that the logs name unless given, else the newest.

    Raises:
        NoTable: there is no history.
        EmptyHistory: there is nothing in it.

    """
    history = History.open(folder)
    span = span_ms(history)
    run = run_of(chosen(engine, rows_of(history.detail), MOST_LOCAL_ROWS))
    kafka = followed_by(folder, history.detail, kafka or Followed())
    settings = Settings(release=kafka.release)
    results = replayed(history.detail, candidates, mode, run, progress, settings)
    names = [candidate.name for candidate in candidates]
    account = account_of(results, names, folder, span, mode, kafka)
    groups = [each.group for each in account.groups[:CHARTS]]
    return WhatIf(
        results=results,
        account=account,
        usages=usages(history, groups, span, zone),
    )
