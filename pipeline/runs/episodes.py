"""The throttle episodes of a history on disk: clients, times and rules, and the times that the log covers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.quotas import QuotaSet

from ..below import Suspect, below_their_bounds
from ..episodes import episodes_in
from ..history import History
from ..losses import losses_of
from ..rates import QUARTER_MS, span_ms
from ..table import Table, following
from ..table.storage import DAY_MS


def find_episodes(
    folder: str,
    client: tuple[str | None, str | None],
    span_s: tuple[float | None, float | None] = (None, None),
    quotas: QuotaSet | None = None,
) -> dict[str, Any]:
    """
    Return a document of the episodes that touch a time, the first ones first; times are Unix times in seconds.

    Its ``not_covered`` are the times without any request, and the quarters of an hour without one of a broker. The
    ``rules`` of an episode, which may be two, are null without quotas. A rule is left out if its clients stayed
    below it, unless the history lacks requests of the broker.

    Args:
        folder: folder of the history, as `quotascope ingest` has made it.
        client: user and client id as in history, None for any.
        span_s: begin and end, Unix times in seconds; the history's own for None.
        quotas: quotas in force at the time; None when they are unknown.

    Raises:
        NoHistory: the folder has no history.
        NoTable: it has no episodes.
        EmptyHistory: the history is empty.
        TableError: a table cannot be read.

    """
    folder = folder.rstrip("/")
    history = History.open(folder)
    table = Table.open(f"{folder}/episodes")
    first_ms, last_ms = span_ms(history, history.seconds, table)
    begin, end = (
        usual if time_s is None else round(1_000 * time_s)
        for time_s, usual in zip(span_s, (first_ms, last_ms), strict=True)
    )
    rows = episodes_in(table, *client, begin, end).sort_by("began").to_pylist()
    tables = None if quotas is None else quotas.tables()
    # days of requests that episodes were not made of yet, as after an ingest that was interrupted
    _, late = history.detail.added_since(table.last_epoch(following(history.detail)))
    late_spans = [(None, file.day * DAY_MS, (file.day + 1) * DAY_MS) for file in late]
    gaps = [*_gaps(history.seconds, (first_ms, begin, end, last_ms)), *sorted(set(late_spans))]
    losses = losses_of(folder, (begin, end)).values()
    rules = [None] * len(rows) if tables is None else _rules(rows, tables, history, losses)
    return {
        "begin": begin / 1_000,
        "end": end / 1_000,
        "not_covered": [
            {"broker": broker, "begin": max(begin, since) / 1_000, "end": min(end, until) / 1_000}
            for broker, since, until in gaps
            if since < end and until > begin
        ],
        "losses": losses,
        "episodes": [
            {
                **{name: row[name] for name in ("user", "client_id", "broker", "quota_type")},
                "began_at": row["began"] / 1_000,
                "ended_at": row["ended"] / 1_000,
                "ongoing": False,
                "throttled_requests": row["throttled"],
                "throttle_seconds": row["throttle_ms"] / 1_000,
                "longest_throttle_seconds": row["longest_ms"] / 1_000,
                "rules": None if of_episode is None else list(of_episode),
            }
            for row, of_episode in zip(rows, rules, strict=True)
        ],
    }  # fmt: skip


def _rules(
    rows: Sequence[Mapping[str, Any]],
    tables: Mapping[QuotaType, RuleTable],
    history: History,
    losses: Mapping[str, Any],
) -> list[list[str] | None]:
    """
    Return the rules that may have throttled, by episode: of the API's quota or of request time, by Kafka's precedence.

    Unlimited rules, and rules whose limit was not reached, are left out.
    """
    incomplete = {figures["broker"] for figures in losses["brokers"] if figures["missing_share"] != 0.0}
    suspects_of_rows = [[*_suspects(row, tables)] for row in rows]
    # with only one suspect there is nothing to decide
    unclear = [
        suspect
        for row, suspects in zip(rows, suspects_of_rows, strict=True)
        if len(suspects) > 1 and row["broker"] not in incomplete
        for suspect, _ in suspects
    ]
    never_reached = below_their_bounds(history, unclear, tables)
    return [
        [name for suspect, name in suspects if suspect not in never_reached] or [name for _, name in suspects]
        for suspects in suspects_of_rows
    ]


def _suspects(row: Mapping[str, Any], tables: Mapping[QuotaType, RuleTable]) -> Iterator[tuple[Suspect, str]]:
    """Yield the quotas that may have throttled the requests of an episode, and the texts of their rules."""
    for kind in QuotaType:
        decision = tables[kind].decide(row["user"], row["client_id"])
        bound = decision.bound
        is_charged = kind is QuotaType.REQUEST or kind.label == row["quota_type"]
        if is_charged and decision.entity is not None and bound is not None and isfinite(bound):
            client, span = (row["user"], row["client_id"]), (row["began"], row["ended"])
            suspect = Suspect(kind=kind, client=client, broker=row["broker"], span_ms=span, bound=bound)
            yield suspect, f"{kind.label} {decision.entity.rule}"


def _gaps(seconds: Table, times: tuple[int, int, int, int]) -> Iterator[tuple[str | None, int, int]]:
    """
    Yield broker, begin and end of the times in a period without requests, ms since 1970.

    `times` are the first request, the begin and end of the period, and the last request. Times before the first and
    after the last request have no broker. Others are quarters of an hour without a request of a broker that has
    requests in the period, or on the day before or after it.
    """
    first_ms, begin, end, last_ms = times
    yield None, begin, first_ms
    yield None, last_ms, end
    begin, end = max(begin, first_ms), min(end, last_ms)
    quarters = range(begin // QUARTER_MS, -(-end // QUARTER_MS))
    quarters_of = defaultdict[str | None, set[int]](set)
    days = range(begin // DAY_MS - 1, end // DAY_MS + 2)
    files = [file for file in seconds.files() if file.day in days]
    for batch in seconds.batches(files, ("broker", "start")):
        quarter: Any = pc.divide(batch.column("start"), pa.scalar(QUARTER_MS))
        pairs = pa.table({"broker": batch.column("broker"), "quarter": quarter})
        for pair in pairs.group_by(["broker", "quarter"]).aggregate([]).to_pylist():
            quarters_of[pair["broker"]].add(pair["quarter"])
    for broker in [*sorted(filter(None, quarters_of))] or (None,):
        # iterating over quarters instead would not end: a log may span centuries
        seen_quarters = {quarter for quarter in quarters_of[broker] if quarter in quarters}
        edges = sorted({quarters.start - 1, quarters.stop, *seen_quarters})
        for earlier, later in pairwise(edges if quarters else ()):
            if later > earlier + 1:
                yield broker, (earlier + 1) * QUARTER_MS, later * QUARTER_MS
