"""
Clients that made others wait.

The waits of a history's requests, divided among those that held the handler threads, and their report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, tzinfo
from typing import Any, Final
from xml.etree.ElementTree import Element

import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import spelled
from quotascope.pages.charts import Curve, Lane, Span, clock, grid_map, line_chart, timeline_chart
from quotascope.pages.markup import table as markup_table
from quotascope.pages.report import Block, Chart, Lines, Report, Rows, csv_of
from quotascope.pages.style import SERIES
from quotascope.pages.words import counted, percent, period, shown

from ..blame.culprits import (
    BY,
    MOST,
    BusyTime,
    Matrix,
    busy_times,
    columns_of,
    label_of,
    matrix_of,
    of_pool,
    pool_named,
    waited,
)
from ..blame.intervals import ALWAYS
from ..blame.summing import ESTIMATED, Blame, Requests
from ..blame.waits import NOT_LOGGED
from ..columns import added
from ..history.store import table_of
from ..losses import losses_of
from ..rates import EmptyHistory
from ..request_log.schema import REQUESTS
from ..table import Progress
from ..topics import topic_names
from .engine import EngineChoice, chosen, engine_of

MOST_LOCAL_REQUESTS: Final = 20_000_000
"""
Number of requests above which Spark is worth its start, if it is installed.

This process holds all, at 0.2 GB a million.
"""

SENTENCES: Final = 5
_POOLS: Final = 10
_ROWS: Final = 8
"""Number of culprits of a terminal's table, beside `others` and `not in the log`."""
_VICTIMS: Final = 3
"""Number of victims with a column in a terminal, which 80 characters have room for."""
_LANES: Final = 100
"""Number of busy times of a timeline."""
_MINUTE_US: Final = 60_000_000
_COLUMNS: Final = (
    "pool",
    *(f"{role}_{name}" for role in ("culprit", "victim") for name in ("user", "client_id", "api", "topic")),
    "wait_ns",
)
_NOTES: Final = (
    (
    "A wait is divided in proportion to the time that each request held a handler thread meanwhile. Not in the log: "
    "time of threads that no logged request held, such as the rest of a request's work, delayed operations, garbage "
    "collection or gaps in the log; and the time that a request takes to reach a thread."),
    "The log's times are whole milliseconds: shorter waits are divided among the requests near them.",
)  # fmt: skip
_NEAR_MS: Final = 3_600_000
"""
Greatest time between the decision for a throttle, by which files list requests, and their time in a thread.

Some wait for minutes in purgatory.
"""


def blame(
    folder: str,
    span_s: tuple[float | None, float | None] = (None, None),
    *,
    threads: int | None = None,
    engine: EngineChoice = EngineChoice.AUTO,
    progress: Progress | None = None,
) -> Blame:
    """
    Divide the waits of requests of a history.

    Args:
        folder: folder of the history, as `quotascope ingest` has made it.
        span_s: begin and end of the period, Unix times in seconds; the history's own for None.
        threads: `num.io.threads` of each broker; estimated from the log unless given.
        engine: the engine that does the work; the sums are the same.
        progress: called with the amount of done work, and of all.

    Raises:
        NoHistory: there is none.
        NoTable: it has no table of requests.
        EmptyHistory: it has no request, or none in the period.
        NoQueueTimes: none of these requests has a queue time.

    """
    table = table_of(folder, "requests", REQUESTS)
    if not any(file.rows for file in table.files()):
        raise EmptyHistory(f"{folder}: the history is empty: ingest request logs first")
    begin, end = (
        usual if time_s is None else round(1e6 * time_s) for time_s, usual in zip(span_s, ALWAYS, strict=True)
    )
    first_ms, last_ms, span = begin // 1_000 - _NEAR_MS, end // 1_000 + _NEAR_MS, (begin, end)
    shards = [[file for file in files if file.overlaps(first_ms, last_ms)] for files in table.shards().values()]
    names = topic_names(folder, table)
    rows = sum(file.rows for files in shards for file in files)
    requests = Requests(folder=folder, table=table, shards=shards, names=names, span_us=span)
    workers = engine_of(chosen(engine, rows, MOST_LOCAL_REQUESTS), "survey of shards")
    plan, sums = workers.waits(requests, threads, progress)
    losses = losses_of(folder, (plan.begin_us // 1_000, plan.end_us // 1_000 + 1))
    return Blame(folder=folder, plan=plan, sums=sums, losses=losses)


def report(result: Blame, zone: tzinfo = UTC, by: str = "client") -> Report:
    """
    Report the clients that held a broker's handler threads, by time, and the clients that waited because of it.

    Args:
        result: the waits.
        zone: time zone of all times.
        by: one of `BY`: clients, APIs or topics as culprits and victims.

    """
    plan, times, pools = result.plan, busy_times(result), pools_of(result)
    blocks = [block for pool, line in pools[:_POOLS] for block in _blocks(result, pool, line, times, zone, by)]
    if omitted_pools := len(pools) - _POOLS:
        line = f"and {counted(omitted_pools, 'more broker')} with less waiting: --json has all"
        blocks += [Lines(lines=(line,), faint=True)] if omitted_pools > 0 else []
    return Report(
        title="Blame",
        where=period(result.folder, plan.begin_us / 1_000, plan.end_us / 1_000, zone),
        headline=sentences(result, zone, times),
        caveats=result.losses.notes,
        blocks=blocks,
        notes=_NOTES,
    )


def _blocks(result: Blame, pool: int, line: str, times: Sequence[BusyTime], zone: tzinfo, by: str) -> Iterator[Block]:
    """Yield the blocks about the handler threads of a broker."""
    yield Lines(title=_capitalized(pool_named(result.plan.head.pools[0][pool])), lines=(line,))
    yield Chart(title="Requests in the queue, on average", level=3, elements=(_waiting(result, pool, zone),))
    if times_of_pool := [time for time in times if time.pool == pool][:_LANES]:
        yield Chart(title="When clients made others wait", level=3, elements=(_timeline(result, times_of_pool, zone),))
    yield Chart(
        title="Culprits (rows) and victims (columns)",
        level=3,
        elements=_heat_map(matrix_of(result, pool, by)),
        rows=_culprits(matrix_of(result, pool, by, limit=_ROWS)),
    )
    for kind in BY:
        caused = matrix_of(result, pool, kind, limit=2 * MOST)
        total = sum(map(sum, caused.waits)) or 1
        has_own_waits = kind == "client"
        yield Rows(
            title=f"Caused, by {'API' if kind == 'api' else kind}",
            level=3,
            heads=("culprit", "#caused", "#share", *(("#waited by others",) if has_own_waits else ())),
            rows=[
                (
                    *(name, waited(sum(row)), percent(sum(row) / total)),
                    *((waited(sum(row) - own_wait),) if has_own_waits else ()),
                )
                for name, row, own_wait in zip(caused.culprits, caused.waits, caused.own_waits, strict=True)
                if sum(row)
            ],
            detail=True,
        )


def _heat_map(matrix: Matrix) -> tuple[Element, Element]:
    """Return a heat map of the waits by culprit and victim, and a table of the victims with their numbers in it."""
    # the other victims, if any, are the last, without a number
    numbers = [f"#{number}" for number in range(1, len(matrix.victims) + (not matrix.has_other_victims))]
    marks, heads = ([*numbers, ""], [*numbers, "others"]) if matrix.has_other_victims else (numbers, numbers)
    values = [ns for row in matrix.waits for ns in row]
    victims = [
        (number, name, waited(sum(row[place] for row in matrix.waits)))
        for place, (number, name) in enumerate(zip(marks, matrix.victims, strict=True))
    ]
    return (
        grid_map(matrix.culprits, heads, values, waited, "Waits by culprit and victim"),
        markup_table(("#", "victim", "#waited"), victims),
    )


def _culprits(matrix: Matrix) -> Rows:
    """Return a row for each culprit, with a column for each of the first victims."""
    # the last victim may be the sum of all others, which gets the last column
    named_victims = matrix.victims[:-1] if matrix.has_other_victims else matrix.victims
    victims = named_victims[:_VICTIMS]
    has_others = len(matrix.victims) > len(victims)
    total = sum(map(sum, matrix.waits)) or 1
    rows = []
    for name, row in zip(matrix.culprits, matrix.waits, strict=True):
        if sum(row):
            waits = [sum(row), *row[: len(victims)]]
            if has_others:
                waits.append(sum(row[len(victims) :]))
            caused, *victim_cells = (waited(ns) if ns else "-" for ns in waits)
            rows.append((name, caused, percent(sum(row) / total), *victim_cells))
    numbers = [f"#{number}" for number, _ in enumerate(victims, start=1)]
    heads = ["culprit", "#caused", "#share", *(f"#{number}" for number in numbers)]
    if has_others:
        heads.append("#others")
    return Rows(
        title="Culprits (rows) and victims (columns)",
        heads=heads,
        rows=rows,
        legend="\n".join(f"{number} {name}" for number, name in zip(numbers, victims, strict=True)),
    )


def sentence(result: Blame, time: BusyTime, zone: tzinfo = UTC) -> str:
    """Return a busy time in words."""
    plan = result.plan
    # times in whole minutes would hide shorter ones
    length = 0 if plan.slot_us < _MINUTE_US else (plan.end_us - plan.begin_us) // 1_000
    begin, end = (clock(us // 1_000, length, zone) for us in (time.begin_us, time.end_us))
    client, pool = spelled(*plan.head.clients[0][time.client]), pool_named(plan.head.pools[0][time.pool])
    victims = counted(time.victims, "other client")
    tail = " each" if time.victims > 1 else ""
    return (
        f"Between {begin} and {end} {client} held {percent(min(1.0, time.held_share))} of {pool}'s handler time; "
        f"{victims} waited {waited(time.wait_ns / time.victims)} longer{tail}."
    )


def sentences(result: Blame, zone: tzinfo = UTC, times: Sequence[BusyTime] | None = None) -> list[str]:
    """
    Return sentences about the largest busy times, at most `SENTENCES`.

    Without a busy time, return a sentence that no client stands out, with the mean wait.
    """
    times = busy_times(result) if times is None else times
    if times:
        return [sentence(result, time, zone) for time in times[:SENTENCES]]
    waits, requests = result.sums.matrix["wait_ns"], result.sums.loads["requests"]
    mean = int(waits.to_numpy().sum()) / max(1, int(requests.to_numpy().sum()))
    return [
        (
            "No client stands out: in each slot of time the others waited less than 1 ms on average, or no client "
            f"caused a quarter of it. Requests waited {waited(mean)} on average."
        )
    ]


def pools_of(result: Blame) -> list[tuple[int, str]]:
    """Return the number of each pool and a line about it, the pool with the longest waits first."""
    plan, (names, pool_by_listener) = result.plan, result.plan.head.pools
    lines = []
    for pool, name in enumerate(names):
        waits, loads = of_pool(result.sums.matrix, pool), of_pool(result.sums.loads, pool)
        unknown = int(plan.head.unknown[pool_by_listener == pool].sum())
        total = int(waits["wait_ns"].sum())
        not_logged = int(waits["wait_ns"][waits["culprit"] == NOT_LOGGED].sum())
        threads = counted(plan.threads[pool], "handler thread")
        origin = f" ({ESTIMATED})" if plan.estimated else ""
        held_share = int(loads["held_us"].sum()) / (plan.threads[pool] * (plan.end_us - plan.begin_us))
        line = (
            f"{pool_named(name)}: {counted(int(loads['requests'].sum()), 'request')} waited {waited(total)}, of "
            f"which {percent(not_logged / total if total else 0.0)} is not in the log; {threads}{origin}, held "
            f"{percent(min(1.0, held_share))} of the time"
        )
        if unknown:
            line += f"; the queue time of {counted(unknown, 'more request')} is unknown"
        lines.append((-total, pool, _capitalized(line)))
    return [(pool, line) for _, pool, line in sorted(lines)]


def _capitalized(text: str) -> str:
    """Return a text with a capital first letter; `str.capitalize` would change the other letters, too."""
    return text[0].upper() + text[1:]


def document(result: Blame) -> dict[str, Any]:
    """
    Return all sums for programs.

    Times are us since 1970, waits are ns, and shares are ratios. Names are not escaped. A culprit that the log does not
    have is null.
    """
    plan, (pools, pool_by_listener), (clients, _) = result.plan, result.plan.head.pools, result.plan.head.clients

    def client(number: int) -> Any:  # noqa: ANN401 - of JSON
        """Return the names of a client, or what stands for a culprit that is none."""
        if number >= 0:
            return clients[number]
        return None if number == NOT_LOGGED else "others"

    return {
        "history": result.folder,
        "begin_us": plan.begin_us,
        "end_us": plan.end_us,
        "slot_us": plan.slot_us,
        "pools": [
            {
                "name": name,
                "io_threads": plan.threads[number],
                "io_threads_estimated": plan.estimated,
                "requests_of_unknown_queue_time": int(plan.head.unknown[pool_by_listener == number].sum()),
            }
            for number, name in enumerate(pools)
        ],
        "groups": [{**group._asdict(), "topic": group.topic or None} for group in plan.head.names],
        "matrix": [
            {**row, "pool": pools[row["pool"]], "culprit": None if row["culprit"] < 0 else row["culprit"]}
            for row in result.sums.matrix.to_pylist()
        ],
        "timeline": [
            {
                **row,
                "pool": pools[row["pool"]],
                "victim": client(row["victim"]),
                "culprit": client(row["culprit"]),
            }
            for row in result.sums.timeline.to_pylist()
        ],
        "loads": [
            {**row, "pool": pools[row["pool"]], "client": client(row["client"])}
            for row in result.sums.loads.to_pylist()
        ],
        "busy_times": [
            {**asdict(time), "pool": pools[time.pool], "client": client(time.client)} for time in busy_times(result)
        ],
        "losses": result.losses.values(),
        "notes": [*result.losses.notes, *_NOTES],
    }  # fmt: skip


def as_csv(result: Blame) -> str:
    """Write a row for each wait of a culprit and a victim; a culprit that is not in the log has no names."""
    names, (pools, _) = result.plan.head.names, result.plan.head.pools
    records = []
    for cell in result.sums.matrix.to_pylist():
        record = {"pool": pools[cell["pool"]], "wait_ns": cell["wait_ns"]}
        for role in ("culprit", "victim"):
            if cell[role] >= 0:
                group = names[cell[role]]
                record |= {
                    f"{role}_user": group.user,
                    f"{role}_client_id": group.client_id,
                    f"{role}_api": label_of("api", group),
                    f"{role}_topic": group.topic or None,
                }
        records.append(record)
    return csv_of(_COLUMNS, records)


def _waiting(result: Blame, pool: int, zone: tzinfo) -> Element:
    """Draw the number of waiting requests over time."""
    plan, slot_ms = result.plan, result.plan.slot_us // 1_000
    timeline = result.sums.timeline.filter(pc.field("pool") == pool)
    waits = columns_of(added(timeline.select(["slot", "wait_ns"]), ["slot"]))
    curve = Curve(
        begin_ms=plan.begin_us // 1_000,
        end_ms=plan.end_us // 1_000,
        piece_ms=slot_ms,
        times_ms=(waits["slot"] * slot_ms).tolist(),
        mean=[],
        peak=(waits["wait_ns"] / 1e3 / plan.slot_us).tolist(),
    )
    return line_chart(curve, [], "{:.3g}".format, zone, "Requests in the queue")[0]


def _timeline(result: Blame, chosen: Sequence[BusyTime], zone: tzinfo) -> Element:
    """Draw a lane for each client that had a busy time, the one with most waiting first."""
    plan, lanes = result.plan, dict[int, list[Span]]()
    for time in chosen:
        spans = lanes.setdefault(time.client, [])
        color = f"var(--c{list(lanes).index(time.client) % SERIES})"
        began, ended = ((us - plan.begin_us) / 1e6 for us in (time.begin_us, time.end_us))
        spans.append(Span(began=began, ended=ended, color=color, title=sentence(result, time, zone)))
    names = [
        Lane(label=shown(spelled(*plan.head.clients[0][client]), 36), rows=[spans]) for client, spans in lanes.items()
    ]
    return timeline_chart(names[:MOST], (plan.end_us - plan.begin_us) / 1e6, begin_ms=plan.begin_us // 1_000, zone=zone)
