"""The throttle episodes of a history on disk: when a client was throttled, by which rule, and which times the log covers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import isfinite
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import QuotaType, RuleTable
from quotascope.pages.words import shown
from quotascope.quotas import QuotaSet

from ..episodes import episodes_in
from ..errors import NoTable
from ..history import History
from ..rates import QUARTER_MS, span_ms
from ..table import Table, following
from ..table.storage import DAY_MS

_OF_EARLIER: Final = "the history is of a release that kept no throttle episodes: `quotascope ingest LOGS --into {}` makes them of all requests that it has, whether these logs are new or not"


def find_episodes(
    folder: str,
    client: tuple[str | None, str | None],
    span_s: tuple[float | None, float | None] = (None, None),
    quotas: QuotaSet | None = None,
) -> dict[str, Any]:
    """
    The episodes that touch a time, by their begin, as a document; times in it are Unix times in seconds.

    Its ``not_covered`` are the times without any request, of a broker by quarter of an hour. The ``rules`` of an episode, which may be two, are
    null without quotas.

    Args:
        folder: of the history, as `quotascope ingest` has made it.
        client: user and client id as in history, None for any.
        span_s: begin and end, Unix times in seconds; the history's own for None.
        quotas: those in force at the time; None when they are unknown.

    Raises:
        NoHistory: there is none.
        NoTable: it has no episodes.
        EmptyHistory: there is nothing in it.
        TableError: a table cannot be read.

    """
    folder = folder.rstrip("/")
    history = History.open(folder)
    try:
        table = Table.open(f"{folder}/episodes")
    except NoTable as error:
        raise NoTable(error.table, _OF_EARLIER.format(shown(folder, 200))) from error
    first, last = span_ms(history, history.seconds, table)
    begin, end = (
        usual if given is None else round(1_000 * given) for given, usual in zip(span_s, (first, last), strict=True)
    )
    rows = episodes_in(table, *client, begin, end).sort_by("began").to_pylist()
    tables = None if quotas is None else quotas.tables()
    _, late = history.detail.added_since(table.last_epoch(following(history.detail)))
    behind = [(None, file.day * DAY_MS, (file.day + 1) * DAY_MS) for file in late]
    gaps = [*_gaps(history.seconds, (first, begin, end, last)), *sorted(set(behind))]
    return {
        "begin": begin / 1_000,
        "end": end / 1_000,
        "not_covered": [
            {"broker": broker, "begin": max(begin, since) / 1_000, "end": min(end, until) / 1_000}
            for broker, since, until in gaps
            if since < end and until > begin
        ],
        "episodes": [
            {
                **{name: row[name] for name in ("user", "client_id", "broker", "quota_type")},
                "began_at": row["began"] / 1_000,
                "ended_at": row["ended"] / 1_000,
                "ongoing": False,
                "throttled_requests": row["throttled"],
                "throttle_seconds": row["throttle_ms"] / 1_000,
                "longest_throttle_seconds": row["longest_ms"] / 1_000,
                "rules": None if tables is None else _rules(row, tables),
            }
            for row in rows
        ],
    }  # fmt: skip


def _rules(row: dict[str, Any], tables: Mapping[QuotaType, RuleTable]) -> list[str]:
    """What may have throttled, by Kafka's precedence: the quota of the API, or that of request time, unless it is infinite."""
    kinds = [kind for kind in QuotaType if kind is QuotaType.REQUEST or kind.label == row["quota_type"]]
    decided = [(kind.label, tables[kind].decide(row["user"], row["client_id"])) for kind in kinds]
    return [
        f"{label} {found.entity.rule}"
        for label, found in decided
        if found.entity is not None and found.bound is not None and isfinite(found.bound)
    ]


def _gaps(seconds: Table, times: tuple[int, int, int, int]) -> Iterator[tuple[str | None, int, int]]:
    """What lies before and after all requests, and the quarters of an hour without one for each broker of these days, the day before, or after."""
    first, begin, end, last = times
    yield None, begin, first
    yield None, last, end
    begin, end = max(begin, first), min(end, last)
    quarters = range(begin // QUARTER_MS, -(-end // QUARTER_MS))
    seen = defaultdict[str | None, set[int]](set)
    days = range(begin // DAY_MS - 1, end // DAY_MS + 2)
    files = [file for file in seconds.files() if file.day in days]
    for batch in seconds.batches(files, ("broker", "start")):
        found: Any = pc.divide(batch.column("start"), pa.scalar(QUARTER_MS))
        pairs = pa.table({"broker": batch.column("broker"), "quarter": found})
        for each in pairs.group_by(["broker", "quarter"]).aggregate([]).to_pylist():
            seen[each["broker"]].add(each["quarter"])
    for broker in [*sorted(filter(None, seen))] or (None,):
        # not the other way round: a log may span centuries
        known = {quarter for quarter in seen[broker] if quarter in quarters}
        edges = sorted({quarters.start - 1, quarters.stop, *known})
        for one, other in pairwise(edges if quarters else ()):
            if other > one + 1:
                yield broker, (one + 1) * QUARTER_MS, other * QUARTER_MS
