"""Who made whom wait: the matrix of victims and culprits of each broker, the sentences that matter, JSON, and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, tzinfo
from typing import Any, Final
from xml.etree.ElementTree import Element

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import spelled
from quotascope.metrics.protocol import ApiKey
from quotascope.pages.charts import Curve, Lane, Span, clock, grid_map, line_chart, timeline_chart
from quotascope.pages.markup import element, framed, table
from quotascope.pages.style import SERIES
from quotascope.pages.words import brief, counted, percent, period, shown

from ..blame.intervals import Group
from ..blame.summing import ESTIMATED, Blame
from ..blame.waits import NOT_LOGGED
from ..columns import added
from ..replay.compiled import Ints

SENTENCES: Final = 5
MOST: Final = 12
"""Victims and culprits of a heat map; all others are one more."""
BY: Final = ("client", "api", "topic")
_CAUSES: Final = 0.25
"""Part of what others wait in a slot from which on a client is the culprit of an episode."""
_WAITED_NS: Final = 1_000_000
"""What others wait on average for a slot to have an episode: less is no more than the log's times and the way to an idle thread."""
_LEAST: Final = 0.01
"""Part of the waiting of the largest episode that one has at least."""
_MINUTE_US: Final = 60_000_000
_PAUSE: Final = 2
"""Slots without such a part that do not end an episode."""
_LISTED: Final = "others", "not in the log"
_LONGEST_TOPIC: Final = 252
"""Characters, with `id:`: as labels are summed, none may be cut (Kafka: `Topic.MAX_NAME_LENGTH`)."""
_NOTES: Final = (
    "A wait is divided in proportion to the time that each request held a handler thread meanwhile. Not in the log: time of threads that no logged request held, such as the rest of a request's work, delayed operations, garbage collection or gaps in the log; and the time that a request takes to reach a thread.",
    "The log's times are whole milliseconds: shorter waits are divided among the requests near them.",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyTime:
    """A time in which a client caused much of what others waited."""

    pool: int
    client: int
    begin_us: int
    end_us: int
    held_share: float
    """Of the pool's handler time, as a ratio."""
    victims: int
    """Other clients that waited for it."""
    wait_ns: int
    """Of all of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Waits by culprit and victim, ns; the largest first. The last culprits are `others` and `not in the log`, the last victim `others`."""

    culprits: Sequence[str]
    victims: Sequence[str]
    waits: Sequence[Sequence[int]]
    """By culprit, by victim."""
    own: Sequence[int]
    """By culprit, the part that it waited for itself."""


def label_of(by: str, group: Group) -> str:
    """A group's client, API or topic."""
    if by == "client":
        return spelled(group.user, group.client_id)
    if by == "topic":
        return shown(group.topic or "no topic", _LONGEST_TOPIC)
    return ApiKey(group.api_key).request_name if group.api_key in set(ApiKey) else f"API {group.api_key}"


def waited(ns: float) -> str:
    """A wait in three digits, such as `3.1 ms`."""
    return brief(ns / 1e9)


def pool_named(name: str) -> str:
    """Of whom the handler threads are, with the name's control characters escaped."""
    node, _, controller = name.rpartition(" controller")
    return f"controller {shown(node)}" if not controller and node else f"broker {shown(name)}"


def matrix_of(found: Blame, pool: int, by: str = "client", most: int = MOST) -> Matrix:
    """The waits of a pool by one of `BY`."""
    named = [label_of(by, group) for group in found.plan.head.names]
    labels, of_groups = np.unique(named, return_inverse=True)
    # of the numbers of groups the last, -1, is `NOT_LOGGED`
    numbers = np.append(of_groups, len(labels))
    parts = _of(found.sums.matrix, pool)
    culprits, victims, ns = numbers[parts["culprit"]], numbers[parts["victim"]], parts["wait_ns"]
    rows, of_rows = _largest(culprits, ns, len(labels), most)
    columns, of_columns = _largest(victims, ns, len(labels), most)
    of_rows[-1] = len(rows) + 1
    waits = np.zeros((len(rows) + 2, len(columns) + 1), np.int64)
    np.add.at(waits, (of_rows[culprits], of_columns[victims]), ns)
    own = np.zeros(len(waits), np.int64)
    np.add.at(own, of_rows[culprits], np.where(culprits == victims, ns, 0))
    return Matrix(
        culprits=[*labels[rows].tolist(), *_LISTED],
        victims=[*labels[columns].tolist(), _LISTED[0]],
        waits=waits.tolist(),
        own=own.tolist(),
    )


def _largest(numbers: Ints, ns: Ints, count: int, most: int) -> tuple[Ints, Ints]:
    """The numbers with most ns, and by number its place among these, for all others the one after the last."""
    totals = np.zeros(count + 1, np.int64)
    np.add.at(totals, numbers, ns)
    order = np.argsort(-totals[:count], kind="stable")
    chosen = order[totals[order] > 0][:most]
    places = np.full(count + 1, len(chosen))
    places[chosen] = np.arange(len(chosen))
    return chosen, places


def episodes(found: Blame) -> list[BusyTime]:
    """All episodes, the one with most waiting first; what a client waits itself is no part of them."""
    plan, waits, loads = found.plan, _columns(found.sums.timeline), _columns(found.sums.loads)
    first, clients = plan.begin_us // plan.slot_us, len(plan.head.clients[0])
    # behind the slots of a client there is a pause that ends an episode
    slots = plan.end_us // plan.slot_us - first + 2 + _PAUSE

    def keys(columns: Mapping[str, Ints], client: str) -> Ints:
        """One for each pool, client and slot: of a client's slots, one after the other."""
        return (columns["pool"] * clients + columns[client]) * slots + columns["slot"] - first

    def of_others(columns: Mapping[str, Ints], client: str, value: str) -> Ints:
        """What all but the client have in each of `places`."""
        of_slots = columns["pool"] * slots + columns["slot"] - first
        places_of_all = places // slots // clients * slots + places % slots
        of_all = _sums(of_slots, columns[value], places_of_all, places_of_all)
        return of_all - _sums(keys(columns, client), columns[value], places, places)

    by_others = (waits["culprit"] >= 0) & (waits["culprit"] != waits["victim"])
    caused, victims, ns = (each[by_others] for each in (keys(waits, "culprit"), waits["victim"], waits["wait_ns"]))
    places = np.unique(caused)
    left, requests = of_others(waits, "victim", "wait_ns"), of_others(loads, "client", "requests")
    chosen = places[(_sums(caused, ns, places, places) >= _CAUSES * left) & (left >= _WAITED_NS * requests)]
    cuts = np.diff(chosen, prepend=-slots, append=1 << 62) > 1 + _PAUSE
    from_, to = chosen[cuts[:-1]], chosen[cuts[1:]]
    numbers = np.searchsorted(to, caused)
    inside = np.append(from_, 1 << 62)[numbers] <= caused
    pairs = np.unique(numbers[inside] * clients + victims[inside])
    pools, of_clients = np.divmod(from_ // slots, clients)
    begin = np.maximum((first + from_ % slots) * plan.slot_us, plan.begin_us)
    end = np.minimum((first + to % slots + 1) * plan.slot_us, plan.end_us)
    held = _sums(keys(loads, "client"), loads["held_us"], from_, to)
    made = pa.table({
        "pool": pools,
        "client": of_clients,
        "begin_us": begin,
        "end_us": end,
        "held_share": held / (np.asarray(plan.threads)[pools] * (end - begin)),
        "victims": np.bincount(pairs // clients, minlength=len(from_)),
        "wait_ns": _sums(caused, ns, from_, to),
    }).sort_by([("wait_ns", "descending")])  # fmt: skip
    return [BusyTime(**each) for each in made.to_pylist() if each["wait_ns"] >= _LEAST * made["wait_ns"][0].as_py()]


def _sums(keys: Ints, values: Ints, first: Ints, last: Ints) -> Ints:
    """The sums of the values whose keys are from each of `first` to the one of `last`."""
    order = np.argsort(keys)
    total = np.r_[0, np.cumsum(values[order])]
    ends = np.searchsorted(keys, last, "right", sorter=order)
    sums: Ints = total[ends] - total[np.searchsorted(keys, first, sorter=order)]
    return sums


def sentence(found: Blame, each: BusyTime, zone: tzinfo = UTC) -> str:
    """An episode in words."""
    plan = found.plan
    # a time to the minute would hide what is shorter
    length = 0 if plan.slot_us < _MINUTE_US else (plan.end_us - plan.begin_us) // 1_000
    begin, end = (clock(us // 1_000, length, zone) for us in (each.begin_us, each.end_us))
    client, pool = spelled(*plan.head.clients[0][each.client]), pool_named(plan.head.pools[0][each.pool])
    others = counted(each.victims, "other client")
    tail = " each" if each.victims > 1 else ""
    return f"Between {begin} and {end} {client} held {percent(min(1.0, each.held_share))} of {pool}'s handler time; {others} waited {waited(each.wait_ns / each.victims)} longer{tail}."


def sentences(found: Blame, zone: tzinfo = UTC, times: Sequence[BusyTime] | None = None) -> list[str]:
    """Those that matter, at most `SENTENCES`, of all episodes; else that there is none, and how long requests waited."""
    times = episodes(found) if times is None else times
    made = [sentence(found, each, zone) for each in times[:SENTENCES]]
    sums = found.sums
    whole, requests = (int(each.to_numpy().sum()) for each in (sums.matrix["wait_ns"], sums.loads["requests"]))
    mean = whole / max(1, requests)
    return made or [
        f"No client stands out: in each slot of time the others waited less than 1 ms on average, or no client caused a quarter of it. Requests waited {waited(mean)} on average."
    ]


def pools_of(found: Blame) -> list[tuple[int, str]]:
    """Pools with requests, the one with most waiting first, and a line about each."""
    plan, (names, of_listeners) = found.plan, found.plan.head.pools
    made = []
    for pool, name in enumerate(names):
        waits, loads = _of(found.sums.matrix, pool), _of(found.sums.loads, pool)
        unknown = int(plan.head.unknown[of_listeners == pool].sum())
        total = int(waits["wait_ns"].sum())
        left = int(waits["wait_ns"][waits["culprit"] == NOT_LOGGED].sum())
        threads = counted(plan.threads[pool], "handler thread")
        how = f" ({ESTIMATED})" if plan.estimated else ""
        held = int(loads["held_us"].sum()) / (plan.threads[pool] * (plan.end_us - plan.begin_us))
        line = f"{pool_named(name)}: {counted(int(loads['requests'].sum()), 'request')} waited {waited(total)}, of which {percent(left / total if total else 0.0)} is not in the log; {threads}{how}, held {percent(min(1.0, held))} of the time"
        if unknown:
            line += f"; the queue time of {counted(unknown, 'more request')} is unknown"
        made.append((-total, pool, _capitalized(line)))
    return [(pool, line) for _, pool, line in sorted(made)]


def _capitalized(text: str) -> str:
    """`str.capitalize` would change the name of a broker, too."""
    return text[0].upper() + text[1:]


def _columns(sums: pa.Table) -> dict[str, Ints]:
    return {name: sums[name].to_numpy() for name in sums.column_names}


def _of(sums: pa.Table, pool: int) -> dict[str, Ints]:
    """The columns of a pool."""
    return _columns(sums.filter(pc.field("pool") == pool))


def blame_json(found: Blame) -> dict[str, Any]:
    """All cells; times are us since 1970, waits ns, shares ratios. Names are as they are; a culprit of null is not in the log."""
    plan, (pools, of_listeners), (clients, _) = found.plan, found.plan.head.pools, found.plan.head.clients

    def client(number: int) -> Any:  # noqa: ANN401 - of JSON
        return clients[number] if number >= 0 else None if number == NOT_LOGGED else "others"

    return {
        "history": found.folder,
        "begin_us": plan.begin_us,
        "end_us": plan.end_us,
        "slot_us": plan.slot_us,
        "pools": [
            {
                "name": name,
                "io_threads": plan.threads[number],
                "io_threads_estimated": plan.estimated,
                "requests_of_unknown_queue_time": int(plan.head.unknown[of_listeners == number].sum()),
            }
            for number, name in enumerate(pools)
        ],
        "groups": [{**each._asdict(), "topic": each.topic or None} for each in plan.head.names],
        "matrix": [{**row, "pool": pools[row["pool"]], "culprit": None if row["culprit"] < 0 else row["culprit"]} for row in found.sums.matrix.to_pylist()],
        "timeline": [{**row, "pool": pools[row["pool"]], "victim": client(row["victim"]), "culprit": client(row["culprit"])} for row in found.sums.timeline.to_pylist()],
        "loads": [{**row, "pool": pools[row["pool"]], "client": client(row["client"])} for row in found.sums.loads.to_pylist()],
        "episodes": [
            {**asdict(each), "pool": pools[each.pool], "client": client(each.client)} for each in episodes(found)
        ],
        "notes": list(_NOTES),
    }  # fmt: skip


def blame_page(found: Blame, zone: tzinfo = UTC) -> str:
    """The text of a file; names are untrusted, and nothing but text in it."""
    return framed("Blame", _sections(found, zone))


def _sections(found: Blame, zone: tzinfo) -> Iterator[Element]:
    plan, times = found.plan, episodes(found)
    yield element("h1", "Blame")
    yield element("p", period(found.folder, plan.begin_us / 1_000, plan.end_us / 1_000, zone), class_="where")
    for each in sentences(found, zone, times):
        yield element("p", each, class_="headline")
    pools = pools_of(found)
    for pool, line in pools[:MOST]:
        yield element("h2", _capitalized(pool_named(plan.head.pools[0][pool])))
        yield element("p", line)
        yield element("h3", "Requests in the queue, on average")
        yield _waiting(found, pool, zone)
        if own := [each for each in times if each.pool == pool][:100]:
            yield element("h3", "When clients made others wait")
            yield _timeline(found, own, zone)
        yield from _tables(found, pool)
    if len(pools) > MOST:
        yield element("p", f"{counted(len(pools) - MOST, 'more broker')} with less waiting: see JSON.", class_="where")
    yield element("ul", *(element("li", each) for each in _NOTES))


def _tables(found: Blame, pool: int) -> Iterator[Element]:
    """The heat map of clients with its numbers, and what APIs and topics caused."""
    matrix = matrix_of(found, pool)
    numbers = [f"#{number}" for number in range(1, len(matrix.victims))]
    yield element("h3", "Culprits (rows) and victims (columns)")
    values = [ns for row in matrix.waits for ns in row]
    yield grid_map(matrix.culprits, [*numbers, "others"], values, waited, "Waits by culprit and victim")
    yield table(
        ("#", "victim", "#waited"),
        [
            (number, name, waited(sum(row[place] for row in matrix.waits)))
            for place, (number, name) in enumerate(zip([*numbers, ""], matrix.victims, strict=True))
        ],
    )
    for by in BY:
        caused = matrix_of(found, pool, by, most=2 * MOST)
        total = sum(map(sum, caused.waits)) or 1
        yield element("h3", f"Caused, by {'API' if by == 'api' else by}")
        rows = [
            (name, waited(sum(row)), percent(sum(row) / total), *([waited(sum(row) - own)] if by == "client" else ()))
            for name, row, own in zip(caused.culprits, caused.waits, caused.own, strict=True)
            if sum(row)
        ]
        yield table(("culprit", "#caused", "#share", *(["#waited by others"] if by == "client" else ())), rows)


def _waiting(found: Blame, pool: int, zone: tzinfo) -> Element:
    plan, slot_ms = found.plan, found.plan.slot_us // 1_000
    own = found.sums.timeline.filter(pc.field("pool") == pool)
    waits = _columns(added(own.select(["slot", "wait_ns"]), ["slot"]))
    curve = Curve(
        begin_ms=plan.begin_us // 1_000,
        end_ms=plan.end_us // 1_000,
        piece_ms=slot_ms,
        times_ms=(waits["slot"] * slot_ms).tolist(),
        mean=[],
        peak=(waits["wait_ns"] / 1e3 / plan.slot_us).tolist(),
    )
    return line_chart(curve, [], "{:.3g}".format, zone, "Requests in the queue")[0]


def _timeline(found: Blame, chosen: Sequence[BusyTime], zone: tzinfo) -> Element:
    """A lane for each client that caused an episode, the one with most waiting first."""
    plan, lanes = found.plan, dict[int, list[Span]]()
    for each in chosen:
        spans = lanes.setdefault(each.client, [])
        color = f"var(--c{list(lanes).index(each.client) % SERIES})"
        began, ended = ((us - plan.begin_us) / 1e6 for us in (each.begin_us, each.end_us))
        spans.append(Span(began=began, ended=ended, color=color, title=sentence(found, each, zone)))
    named = [
        Lane(label=shown(spelled(*plan.head.clients[0][client]), 36), rows=[spans]) for client, spans in lanes.items()
    ]
    return timeline_chart(named[:MOST], (plan.end_us - plan.begin_us) / 1e6, begin_ms=plan.begin_us // 1_000, zone=zone)
