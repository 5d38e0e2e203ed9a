"""Usage of quotas by client in a period, and by topic: the sums of a history, and their report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaType, spelled
from quotascope.pages.baseline import legend_of_bounds
from quotascope.pages.report import TERMINAL_ROWS, Block, Lines, Report, Rows, csv_of
from quotascope.pages.words import amount, counted, percent, period, seconds, shown, spaced
from quotascope.quotas.team_finder import TeamFinder, team_words

from ..columns import added, having
from ..errors import NoTable
from ..history import History
from ..losses import SHOWN, Losses, losses_of
from ..rates import rate, span_ms, sums_of, units_legend
from ..table import Table
from ..topics import ID, MINUTE_MS, TOPICS, Kind, topic_names

MOST: Final = 12
"""Number of clients of which topics are shown, and of topics of each."""
_US: Final = 1e6
_TO_PERCENT: Final = 1e-4
"""Factor from us of thread time a second to percent of a thread."""
_SUM: Final = "The sum of all brokers, each of which enforces limits separately."
_PROTOCOL: Final = (
    "Protocol is what the quota charges beside records: headers, names, empty responses. Records that brokers fetched "
    "from remote storage are among those of fetch."
)
UNSIZED: Final = (
    "the size of a throttled Fetch, which is answered empty, is unknown, and so are the partitions of some requests"
)
"""Reason for amounts that are lower bounds (`legend_of_bounds`)."""
NOTHING: Final = "The history has no request of these clients in this period."
_CLIENT: Final = ("user", "client_id", "quota_type")
_OF_ALL: Final = ("quota_type", "kind")
"""Columns that stay when all clients are added up."""
_KINDS: Final = {kind.label: kind for kind in QuotaType}
_HEADS: Final = ("entity", "#used", "#share", "#mean", "#requests")
_COLUMNS: Final = (
    *("user", "client_id", "quota_type", "amount", "requests", "requests_of_unknown_size", "missing_share"),
    *("protocol", "unknown_topics"),
)


@dataclass(slots=True)
class ClientUsage:
    """Usage of a quota type by a client, on all brokers."""

    user: str
    client_id: str | None
    """Client id; None for the sum over all client ids of the user."""
    kind: QuotaType
    amount: int = 0
    """Bytes, us of thread time, or partitions of the requests whose amount is known."""
    requests: int = 0
    """Number of requests whose amount is known."""
    unsized: int = 0
    """
    Number of requests whose amount is unknown.

    They are throttled fetches, which are answered empty, and mutations of topics of unknown size.
    """
    topics: Counter[str] = field(default_factory=Counter)
    """Bytes of records by topic: its name, or `ID` and its id if the log has no name."""
    protocol: int = 0
    """Bytes of the same requests beside records."""
    team: str | None = None
    """Label of a team, of which this is the sum; None for a client or a user."""
    missing_share: float | None = 0.0
    """
    Largest missing share of the requests of any client of the team, 0 to 1; None if it is unknown.

    For a client or a user, the losses have the share.
    """

    @property
    def unknown(self) -> int:
        """
        Bytes whose topics are unknown, of a produce or fetch quota.

        It is 0 if the table of `topics` has days that the table of `seconds` has no more, and so has more bytes.
        """
        return max(0, self.amount - self.protocol - self.topics.total())


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage by client and quota type, the largest first."""

    folder: str
    begin_ms: int
    end_ms: int
    """End of the part of the period that the history covers: ms since 1970, UTC."""
    clients: Sequence[ClientUsage]
    totals: Mapping[str, int]
    """
    Amounts of all clients by label of the quota type, whichever are in `clients`.

    They are of the requests whose amount is known.
    """
    unsized: Mapping[str, int]
    """Number of the other requests by label of the quota type."""
    losses: Losses = field(default_factory=Losses)
    """Losses of the history in the period."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for readers of the figures, one sentence each."""
        return (*self.losses.notes, _SUM, *([_PROTOCOL] if self.has_topics else ()), *self.of_sizes)

    @property
    def has_topics(self) -> bool:
        """True if there are clients whose bytes are of topics."""
        return any(client.kind.of_bytes for client in self.clients)

    @property
    def of_sizes(self) -> Sequence[str]:
        """Notes on requests of unknown size, if there are any."""
        return legend_of_bounds([UNSIZED]) if any(self.unsized.values()) else []


def find_usage(
    folder: str,
    client: tuple[str | None, str | None] = (None, None),
    span_s: tuple[float | None, float | None] = (None, None),
) -> Usage:
    """
    Add up a history.

    Args:
        folder: folder of the history, as `quotascope ingest` has made it.
        client: user and client id as in history, None for any.
        span_s: begin and end, Unix times in seconds, which are extended to whole minutes; the history's own for None.

    Raises:
        NoHistory: the folder has no history.
        EmptyHistory: the history is empty.
        TableError: a table cannot be read.

    """
    history = History.open(folder)
    covered = span_ms(history, history.seconds)
    first_ms, last_ms = (
        usual if time_s is None else round(1_000 * time_s) for time_s, usual in zip(span_s, covered, strict=True)
    )
    span = first_ms // MINUTE_MS * MINUTE_MS, -(-last_ms // MINUTE_MS) * MINUTE_MS
    named_client = dict(zip(_CLIENT, client, strict=False))
    by_key: dict[tuple[str, ...], ClientUsage] = {}

    def usage_of(row: Mapping[str, Any]) -> ClientUsage:
        """Return the usage of the client of a row, a new one for its first row."""
        user, client_id, label = key = tuple(row[name] for name in _CLIENT)
        return by_key.setdefault(key, ClientUsage(user, client_id, _KINDS[label]))

    totals: Counter[str] = Counter()
    unsized: Counter[str] = Counter()
    sums = sums_of(history, span, ("start", *_CLIENT, "amount", "requests"))
    for row in _added(sums, _CLIENT, span, named_client):
        totals[row["quota_type"]] += row["amount"]
        if row["user"] is not None:  # None stands for all clients that are not named
            usage = usage_of(row)
            usage.amount, usage.requests = row["amount"], row["requests"]
    with suppress(NoTable):  # the case after a first ingest that was interrupted
        table = Table.open(f"{folder.rstrip('/')}/topics", schema=TOPICS)
        names = topic_names(folder)
        key = (*_CLIENT, "kind", "topic", "topic_id")
        files = [file for file in table.files() if file.overlaps(*span)]
        for row in _added(table.batches(files, ("start", *key, "bytes", "requests")), key, span, named_client):
            kind, topic_id = row["kind"], row["topic_id"]
            if kind == Kind.UNKNOWN_SIZE:
                unsized[row["quota_type"]] += row["requests"]
            if row["user"] is None:
                continue
            if kind == Kind.RECORDS:
                name = row["topic"] or names.get(topic_id, f"{ID}{topic_id}")
                usage_of(row).topics[name] += row["bytes"]
            elif kind == Kind.PROTOCOL:
                usage_of(row).protocol += row["bytes"]
            elif kind == Kind.UNKNOWN_SIZE:
                usage_of(row).unsized += row["requests"]
    begin = max(span[0], covered[0])
    end = max(begin, min(span[1], covered[1]))
    return Usage(folder, begin, end, _ordered(by_key.values()), totals, unsized, losses_of(folder, span))


def _ordered(clients: Iterable[ClientUsage]) -> list[ClientUsage]:
    """Return clients by quota type, and then by amount, the largest first."""
    order = list(QuotaType)
    return sorted(
        clients,
        key=lambda client: (
            order.index(client.kind),
            -client.amount,
            client.team or "",
            client.user,
            client.client_id or "",
        ),
    )


def by_user(usage: Usage) -> Usage:
    """
    Return usage with the clients of each user added up.

    Client ids, as those of Spark, may change with each run.
    """
    sums: dict[tuple[str, QuotaType], ClientUsage] = {}
    for client in usage.clients:
        total = sums.setdefault((client.user, client.kind), ClientUsage(client.user, None, client.kind))
        _add(total, client)
    return replace(usage, clients=_ordered(sums.values()))


def by_team(usage: Usage, teams: TeamFinder) -> Usage:
    """Return usage with the clients of each team added up; those without a team are one row."""
    sums: dict[tuple[str, QuotaType], ClientUsage] = {}
    for client in usage.clients:
        label = teams.label(client.user, client.client_id or "")
        total = sums.setdefault((label, client.kind), ClientUsage("", None, client.kind, team=label))
        _add(total, client)
        total.missing_share = _worse(total.missing_share, usage.losses.share(client.user, client.client_id))
    return replace(usage, clients=_ordered(sums.values()))


def _add(total: ClientUsage, client: ClientUsage) -> None:
    """Add the figures of a client to a sum; missing shares are not added."""
    total.amount += client.amount
    total.requests += client.requests
    total.unsized += client.unsized
    total.topics.update(client.topics)
    total.protocol += client.protocol


def _worse(one: float | None, other: float | None) -> float | None:
    """Return the larger missing share; None if none is visible and one is unknown."""
    largest = max(one or 0.0, other or 0.0)
    return None if largest < SHOWN and None in {one, other} else largest


def _missing_share(usage: Usage, client: ClientUsage) -> float | None:
    """Return the missing share of the requests of a client, a user or a team, as `Losses.share`."""
    return usage.losses.share(client.user, client.client_id) if client.team is None else client.missing_share


def _name(client: ClientUsage) -> str:
    """Return the name of a client or a team for people."""
    return spelled(client.user, client.client_id) if client.team is None else team_words(client.team)


def _added(
    batches: Iterable[pa.RecordBatch], key: Sequence[str], span: tuple[int, int], named_client: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """
    Return sums by key of the rows that start in a span, with no more than a row group in memory.

    Clients other than the named one are added up as one client, whose user and client id are None.
    """
    inside = (pc.field("start") >= span[0]) & (pc.field("start") < span[1])
    parts = []
    for batch in batches:
        rows = pa.Table.from_batches([batch]).filter(inside)
        is_named = having(rows, named_client)
        columns = {name: rows[name] for name in rows.column_names if name != "start"}
        columns |= {name: pc.if_else(is_named, rows[name], None) for name in key if name not in _OF_ALL}
        parts.append(added(pa.table(columns), key))
    return added(pa.concat_tables(parts), key).to_pylist() if parts else []


def report(usage: Usage, zone: tzinfo = UTC, *, limit: int = TERMINAL_ROWS, by_topic: bool = False) -> Report:
    """
    Report the clients of each quota type, and the topics of the first ones.

    Args:
        usage: the sums.
        zone: time zone of the period.
        limit: number of clients of a quota type that a terminal shows.
        by_topic: whether a terminal shows topics, too.

    """
    return Report(
        title="Usage",
        where=period(usage.folder, usage.begin_ms, usage.end_ms, zone),
        headline=() if usage.clients else (NOTHING,),
        caveats=usage.losses.notes,
        blocks=[block for kind in QuotaType for block in _blocks(usage, kind, limit, by_topic=by_topic)],
        notes=(_SUM, *([_PROTOCOL] if by_topic and usage.has_topics else ()), *usage.of_sizes),
        chart_notes=() if by_topic or not usage.has_topics else (_PROTOCOL,),
    )


def _blocks(usage: Usage, kind: QuotaType, limit: int, *, by_topic: bool) -> Iterator[Block]:
    """Yield the table of a quota type, then one for the topics of each client."""
    clients = [client for client in usage.clients if client.kind is kind]
    if not clients:
        return
    total = usage.totals.get(kind.label) or 1
    yield Rows(
        title=spaced(kind.label).capitalize(),
        heads=_HEADS if clients[0].team is None else ("team", *_HEADS[1:]),
        rows=[(_name(client), *_cells(usage, client, total)) for client in clients],
        shares=[None if client.unsized else client.amount / total for client in clients],
        legend=units_legend([kind] if kind is QuotaType.CONTROLLER_MUTATION else ()),
        terminal_rows=limit,
    )
    for place, client in enumerate(clients[:MOST] if kind.of_bytes else ()):
        detail = not by_topic or place >= limit
        title = f"{_name(client)}: {spaced(kind.label)}"
        topics = list(topics_of(client))
        if not topics:
            yield Lines(title=title, level=3, lines=("unknown topics",), faint=True, detail=detail)
            continue
        yield Rows(
            title=title,
            level=3,
            heads=("topic", "#bytes", "#share"),
            rows=[(name, size, percent(share)) for name, size, share in topics],
            shares=[share for *_, share in topics],
            color="var(--c1)",
            detail=detail,
        )


def _cells(usage: Usage, client: ClientUsage, total: int) -> tuple[str, ...]:
    """Return the cells of a client: amount, share of all clients' known amount, mean rate, requests."""
    kind = client.kind
    # from an amount to a mean rate in the unit of the quota type
    scale = (_TO_PERCENT if kind is QuotaType.REQUEST else 1.0) * 1_000 / max(1, usage.end_ms - usage.begin_ms)
    cells = [f"{amount(client.amount)}B", percent(client.amount / total), rate(kind, client.amount * scale)]
    if not kind.of_bytes:
        cells[0] = seconds(client.amount / _US) if kind is QuotaType.REQUEST else f"{client.amount:,} mut"
    if client.unsized and not client.requests:
        cells = ["unknown"] * 3
    elif client.unsized or (_missing_share(usage, client) or 0.0) >= SHOWN:
        cells = [f"≥ {cells[0]}", "unknown", f"≥ {cells[2]}"]
    elif kind.label in usage.unsized:
        cells[1] = f"≤ {cells[1]}"  # the others used more than is known
    elif usage.losses.incomplete(None, None):
        cells[1] = "unknown"  # the others lack requests
    return *cells, f"{client.requests:,}" + (f" + {client.unsized:,} unknown" if client.unsized else "")


def topics_of(usage: ClientUsage) -> Iterator[tuple[str, str, float]]:
    """Yield the topics of the known bytes of a client, `MOST` topics first: name, bytes with their unit, share."""
    topics = usage.topics.most_common()
    rows = [(shown(name, 250), size) for name, size in topics[:MOST]]
    if other_topics := topics[MOST:]:
        rows.append((counted(len(other_topics), "other topic"), sum(size for _, size in other_topics)))
    rows += [("protocol overhead", usage.protocol), ("unknown topics", usage.unknown)]
    total = sum(size for _, size in rows)
    for name, size in rows if usage.kind.of_bytes else ():
        if size:
            yield name, f"{amount(size)}B", size / total


def document(usage: Usage) -> dict[str, Any]:
    """
    Return all clients, and the totals of all of the history, for programs.

    Amounts are bytes, us of thread time or partitions, null when unknown. Names are as they are; a topic without a
    known name is `id:` and its id.
    """
    return {
        "history": usage.folder,
        "begin_ms": usage.begin_ms,
        "end_ms": usage.end_ms,
        "totals": usage.totals,
        "requests_of_unknown_size": usage.unsized,
        "clients": [_values(usage, client) for client in usage.clients],
        "losses": usage.losses.values(),
        "notes": list(usage.notes),
    }


def as_csv(usage: Usage) -> str:
    """Write a row for each client and quota type, with the values of `document` but without its topics."""
    columns = _COLUMNS if all(client.team is None for client in usage.clients) else ("team", *_COLUMNS[2:])
    return csv_of(columns, (_values(usage, client) for client in usage.clients))


def _values(usage: Usage, client: ClientUsage) -> dict[str, Any]:
    """Return a client, or a team, for `document`; the names of `_COLUMNS` are among the keys."""
    names = {"user": client.user, "client_id": client.client_id} if client.team is None else {"team": client.team}
    values: dict[str, Any] = {
        **names,
        "quota_type": client.kind.label,
        "amount": client.amount if client.requests or not client.unsized else None,
        "requests": client.requests,
        "requests_of_unknown_size": client.unsized,
        "missing_share": _missing_share(usage, client),
    }
    if client.kind.of_bytes:
        values |= {"topics": client.topics, "protocol": client.protocol, "unknown_topics": client.unknown}
    return values
