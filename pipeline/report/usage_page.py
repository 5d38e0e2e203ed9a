"""Who used how much of which quota in a period, and for which topics: sums of a history, JSON, and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any, Final
from xml.etree.ElementTree import Element

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import QuotaType, spelled
from quotascope.pages.charts import share_bar
from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.words import amount, counted, percent, period, seconds, shown, spaced

from ..columns import added, having
from ..errors import NoTable
from ..history import History
from ..rates import rate, span_ms, sums_of
from ..table import Table
from ..topics import ID, MINUTE_MS, TOPICS, Kind, topic_names

MOST: Final = 12
"""Clients of which topics are shown on the page, and topics of each."""
_US: Final = 1e6
_TO_PERCENT: Final = 1e-4
"""From us of thread time a second to percent of a thread."""
NOTES: Final = (
    "The sum of all brokers, each of which enforces limits separately.",
    "Protocol is what the quota charges beside records: headers, names, empty responses. Records that brokers fetched from remote storage are among those of fetch.",
    "The size of a throttled Fetch, which is answered empty, is unknown, and so are the partitions of some requests.",
)  # fmt: skip
NOTHING: Final = "The history has no request of these clients in this period."
OF_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
_CLIENT: Final = ("user", "client_id", "quota_type")
_OF_ALL: Final = ("quota_type", "kind")
"""By these, all clients are added up."""
_KINDS: Final = {kind.label: kind for kind in QuotaType}


@dataclass(slots=True)
class ClientUsage:
    """What a client used of a quota type, on all brokers."""

    user: str
    client_id: str
    kind: QuotaType
    amount: int = 0
    """Bytes, us of thread time, or partitions: of the requests whose amount is known."""
    requests: int = 0
    """Those whose amount is known."""
    unsized: int = 0
    """Those whose amount is unknown: throttled fetches, which are answered empty, and mutations of topics of unknown size."""
    topics: Counter[str] = field(default_factory=Counter)
    """Bytes of records by topic: its name, or `ID` and its id where the log has no name."""
    protocol: int = 0
    """Bytes of the same requests beside records."""

    @property
    def unknown(self) -> int:
        """Bytes of which the topics are unknown, of a produce or fetch quota; 0 where `seconds` lost days that `topics` has."""
        return max(0, self.amount - self.protocol - self.topics.total())


@dataclass(frozen=True, slots=True)
class Usage:
    """Who used what, by quota type, the client that used most first."""

    folder: str
    begin_ms: int
    end_ms: int
    """What the history covers of the period: ms since 1970, UTC."""
    clients: Sequence[ClientUsage]
    totals: Mapping[str, int]
    """Amounts of all clients by label of the quota type, whichever are in `clients`: of the requests whose amount is known."""
    unsized: Mapping[str, int]
    """By label of the quota type, the other requests."""


def find_usage(
    folder: str,
    client: tuple[str | None, str | None] = (None, None),
    span_s: tuple[float | None, float | None] = (None, None),
) -> Usage:
    """
    Add up a history.

    Args:
        folder: of the history, as `quotascope ingest` has made it.
        client: user and client id as in history, None for any.
        span_s: begin and end, Unix times in seconds, which are extended to whole minutes; the history's own for None.

    Raises:
        NoHistory: there is none.
        EmptyHistory: there is nothing in it.
        TableError: a table cannot be read.

    """
    history = History.open(folder)
    covered = span_ms(history, history.seconds)
    first, last = (
        usual if given is None else round(1_000 * given) for given, usual in zip(span_s, covered, strict=True)
    )
    span = first // MINUTE_MS * MINUTE_MS, -(-last // MINUTE_MS) * MINUTE_MS
    wanted = dict(zip(_CLIENT, client, strict=False))
    found: dict[tuple[str, ...], ClientUsage] = {}

    def of(row: Mapping[str, Any]) -> ClientUsage:
        user, client_id, label = key = tuple(row[name] for name in _CLIENT)
        return found.setdefault(key, ClientUsage(user, client_id, _KINDS[label]))

    totals: Counter[str] = Counter()
    unsized: Counter[str] = Counter()
    sums = sums_of(history, span, ("start", *_CLIENT, "amount", "requests"))
    for row in _added(sums, _CLIENT, span, wanted):
        totals[row["quota_type"]] += row["amount"]
        if row["user"] is not None:
            usage = of(row)
            usage.amount, usage.requests = row["amount"], row["requests"]
    with suppress(NoTable):  # as in a history of an earlier release
        table = Table.open(f"{folder.rstrip('/')}/topics", schema=TOPICS)
        names = topic_names(folder)
        key = (*_CLIENT, "kind", "topic", "topic_id")
        files = [file for file in table.files() if file.overlaps(*span)]
        for row in _added(table.batches(files, ("start", *key, "bytes", "requests")), key, span, wanted):
            kind, topic_id = row["kind"], row["topic_id"]
            if kind == Kind.UNKNOWN_SIZE:
                unsized[row["quota_type"]] += row["requests"]
            if row["user"] is None:
                continue
            if kind == Kind.RECORDS:
                name = row["topic"] or names.get(topic_id, f"{ID}{topic_id}")
                of(row).topics[name] += row["bytes"]
            elif kind == Kind.PROTOCOL:
                of(row).protocol += row["bytes"]
            elif kind == Kind.UNKNOWN_SIZE:
                of(row).unsized += row["requests"]
    order = list(QuotaType)
    clients = sorted(found.values(), key=lambda each: (order.index(each.kind), -each.amount, each.user, each.client_id))
    begin = max(span[0], covered[0])
    return Usage(folder, begin, max(begin, min(span[1], covered[1])), clients, totals, unsized)


def _added(
    batches: Iterable[pa.RecordBatch], key: Sequence[str], span: tuple[int, int], wanted: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Sums by key of the rows that start in a span, in the memory of a row group; all other clients are one, without names."""
    inside = (pc.field("start") >= span[0]) & (pc.field("start") < span[1])
    parts = []
    for each in batches:
        rows = pa.Table.from_batches([each]).filter(inside)
        own = having(rows, wanted)
        columns = {name: rows[name] for name in rows.column_names if name != "start"}
        columns |= {name: pc.if_else(own, rows[name], None) for name in key if name not in _OF_ALL}
        parts.append(added(pa.table(columns), key))
    return added(pa.concat_tables(parts), key).to_pylist() if parts else []


HEADS: Final = ("used", "share", "mean", "requests")


def clients_of(found: Usage, kind: QuotaType) -> list[tuple[ClientUsage, float, tuple[str, ...]]]:
    """The clients of a quota type, each with its share of what is known of all clients, and its cells under `HEADS`."""
    own = [each for each in found.clients if each.kind is kind]
    total = found.totals.get(kind.label) or 1
    scale = (_TO_PERCENT if kind is QuotaType.REQUEST else 1.0) * 1_000 / max(1, found.end_ms - found.begin_ms)
    made = []
    for each in own:
        cells = [f"{amount(each.amount)}B", percent(each.amount / total), rate(kind, each.amount * scale)]
        if kind not in OF_BYTES:
            cells[0] = seconds(each.amount / _US) if kind is QuotaType.REQUEST else f"{each.amount:,} mut"
        if each.unsized:
            cells = [f"≥ {cells[0]}", "unknown", f"≥ {cells[2]}"] if each.requests else ["unknown"] * 3
        elif kind.label in found.unsized:
            cells[1] = f"≤ {cells[1]}"
        count = f"{each.requests:,}" + (f" + {each.unsized:,} unknown" if each.unsized else "")
        made.append((each, each.amount / total, (*cells, count)))
    return made


def topics_of(usage: ClientUsage) -> Iterator[tuple[str, str, float]]:
    """What the known bytes of a client were for, `MOST` topics first: name, bytes with their unit, share."""
    topics = usage.topics.most_common()
    rows = [(shown(name, 250), held) for name, held in topics[:MOST]]
    if left := topics[MOST:]:
        rows.append((counted(len(left), "other topic"), sum(held for _, held in left)))
    rows += [("protocol overhead", usage.protocol), ("unknown topics", usage.unknown)]
    whole = sum(held for _, held in rows)
    for name, held in rows if usage.kind in OF_BYTES else ():
        if held:
            yield name, f"{amount(held)}B", held / whole


def usage_json(found: Usage) -> dict[str, Any]:
    """All clients, and the totals of all of the history; amounts are bytes, us of thread time or partitions, null when unknown. Names are as they are; a topic without a known name is `id:` and its id."""
    clients = [
        {
            "user": each.user,
            "client_id": each.client_id,
            "quota_type": each.kind.label,
            "amount": each.amount if each.requests or not each.unsized else None,
            "requests": each.requests,
            "requests_of_unknown_size": each.unsized,
            **({"topics": each.topics, "protocol": each.protocol, "unknown_topics": each.unknown} if each.kind in OF_BYTES else {}),
        }
        for each in found.clients
    ]  # fmt: skip
    return {
        "history": found.folder,
        "begin_ms": found.begin_ms,
        "end_ms": found.end_ms,
        "totals": found.totals,
        "requests_of_unknown_size": found.unsized,
        "clients": clients,
        "notes": NOTES,
    }


def usage_page(found: Usage, zone: tzinfo = UTC) -> str:
    """The text of a file; names are untrusted, and nothing but text in it."""
    return framed("Usage", _sections(found, zone))


def _sections(found: Usage, zone: tzinfo) -> Iterator[Element]:
    yield element("h1", "Usage")
    yield element("p", period(found.folder, found.begin_ms, found.end_ms, zone), class_="where")
    if not found.clients:
        yield element("p", NOTHING, class_="headline")
    for kind in QuotaType:
        own = clients_of(found, kind)
        if not own:
            continue
        yield element("h2", spaced(kind.label).capitalize())
        rows: list[Sequence[Child]] = [
            (spelled(each.user, each.client_id), "" if each.unsized else share_bar(share, "var(--c0)"), *cells)
            for each, share, cells in own
        ]
        yield table(("entity", "=", *(f"#{head}" for head in HEADS)), rows)
        for each, _, _ in own[:MOST] if kind in OF_BYTES else ():
            yield element("h3", f"{spelled(each.user, each.client_id)}: {spaced(kind.label)}")
            rows = [
                (name, share_bar(share, "var(--c1)"), held, percent(share)) for name, held, share in topics_of(each)
            ]
            yield (
                table(("topic", "=", "#bytes", "#share"), rows)
                if rows
                else element("p", "unknown topics", class_="where")
            )
    yield element("ul", *(element("li", note) for note in NOTES))
