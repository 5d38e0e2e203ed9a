"""Limits recommended from a history on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from quotascope.quotas import QuotaSet

from ..candidates import Candidate
from ..followed import followed_by
from ..history.store import History
from ..recommend.advice import NOW, RECOMMENDED, Advice, changes, hits, target
from ..recommend.coverage import COLUMNS, Tally, coverage_of, tally
from ..recommend.need import Need, needs
from ..recommend.policy import Policy, Shape
from ..recommend.recommendation import Recommendation, recommendations
from ..recommend.sensors import Windows
from ..report.recommend_page import charted, recommend_page
from ..table import File, Table
from ..table.table import Run, run_here
from ..whatif.batches import NEEDED, whole_groups
from ..whatif.mode import Mode, Settings
from .engine import MOST_LOCAL_ROWS, Engine, chosen, run_of
from .parts import Progress, parts_of, told
from .replaying import replayed
from .usages import rows_of, span_ms, usages

_ROWS: Final = 1 << 20
"""So many requests are searched at once, unless a user has more."""


def advise(
    folder: str,
    policy: Policy,
    *,
    now: QuotaSet | None = None,
    windows: Windows | None = None,
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
        engine: who does the work.
        progress: is told how much is done, and of how much.

    Raises:
        NoTable, EmptyHistory: there is no history, or nothing in it.
        ShortLog: it covers less than a day, and the policy does not say that this is enough.

    """
    history = History.open(folder)
    span = span_ms(history)
    run = run_of(chosen(engine, rows_of(history.detail), MOST_LOCAL_ROWS))
    coverage = coverage_of(_tallied(history.detail, policy, run), span, policy.zone)
    if not policy.short_log:
        coverage.check(folder)
    windows = windows or Windows()
    windows = replace(
        windows, followed=followed_by(folder, history.detail, windows.followed)
    )
    needs = _needs(history.detail, policy, windows, run, progress)
    made = recommendations(needs, policy)
    results = _replay(history.detail, now, made, windows, run)
    return Advice(
        source=folder,
        coverage=coverage,
        policy=policy,
        kafka=windows.followed,
        now=now,
        recommended=made,
        changes=changes(now, made),
        hits=hits(results, now_known=now is not None),
    )


def _tallied(history: Table, policy: Policy, run: Run) -> Tally:
    """The requests of the whole history, counted bucket by bucket: the counts add up, whatever an entity's users are."""
    found = Tally()
    for part in run(partial(tally_of_part, history, policy.shape), parts_of(history, across_users=False)):  # fmt: skip
        found.add(part)
    return found


def tally_of_part(table: Table, shape: Shape, files: Sequence[File]) -> Tally:
    """What is counted of some files, in the memory of a batch of rows."""
    batches = (table.storage.batches(file, COLUMNS) for file in files)
    return tally(chain.from_iterable(batches), shape)


def _needs(
    history: Table,
    policy: Policy,
    windows: Windows,
    run: Run,
    progress: Progress | None,
) -> Iterator[Need]:
    across_users = policy.shape is Shape.CLIENT
    if across_users and run is not run_here:
        yield from _of_clients(history, policy, windows)
        return
    parts = parts_of(history, across_users=across_users)
    work = partial(needs_of_part, history, policy, windows)
    for found in told(run(work, parts), len(parts), progress):
        yield from found


def _of_clients(history: Table, policy: Policy, windows: Windows) -> list[Need]:
    from ..spark.recommend import needs_of_clients  # noqa: PLC0415 - brings Spark in
    from ..spark.session import session  # noqa: PLC0415 - as above

    # what Spark's workers import is imported absolutely: to mypy its classes are others
    given: tuple[Any, Any, Any] = (history, policy, windows)
    found: Any = needs_of_clients(*given, session())
    return list(found)


def needs_of_part(
    table: Table, policy: Policy, windows: Windows, files: Sequence[File]
) -> list[Need]:
    """What the entities in some files need; the files hold whole groups. Memory is that of the largest user."""
    batches = table.batches(files, NEEDED)
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    if policy.shape is Shape.CLIENT:  # any two users may share one
        whole = list(tables)
        return list(needs(pa.concat_tables(whole), policy, windows)) if whole else []
    pieces = whole_groups(tables, _ROWS)
    return [need for piece in pieces for need in needs(piece, policy, windows)]


def _replay(
    table: Table,
    now: QuotaSet | None,
    made: Sequence[Recommendation],
    windows: Windows,
    run: Run,
) -> pa.Table:
    tried = {RECOMMENDED: target(now, made)}
    if now is not None:
        tried[NOW] = now
    candidates = [
        Candidate(
            name=name,
            quotas=quotas,
            windows=windows.client,
            controller_windows=windows.controller,
        )
        for name, quotas in tried.items()
    ]
    settings = Settings(release=windows.followed.release)
    return replayed(table, candidates, Mode.OPEN_LOOP, run, settings=settings)


def page(advice: Advice, commands: Sequence[str]) -> str:
    """The report on a recommendation, with what its history says about those who use most."""
    history = History.open(advice.source)
    groups = [each.group for each in charted(advice)]
    drawn = usages(history, groups, advice.span_ms, advice.policy.zone)
    return recommend_page(advice, drawn, commands)
