"""Blame of a history: sums by pool, slot and client, however it is cut, and what people read of it."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.report.reader import PLAIN, Reader
from tests.pipeline.report.results import HOSTILE
from tests.pipeline.table.rows import append
from tests.strategies import examples

from quotascope.pages.report import html
from quotascope.pipeline.blame.culprits import busy_times, matrix_of
from quotascope.pipeline.blame.intervals import Intervals, merged, read
from quotascope.pipeline.blame.summing import KEY, Blame, NoQueueTimes, Sums, Survey, plan_of, sums_of
from quotascope.pipeline.blame.waits import MARGIN_US, spread, summed
from quotascope.pipeline.columns import added
from quotascope.pipeline.errors import NoHistory, NoTable
from quotascope.pipeline.history import History
from quotascope.pipeline.history.store import table_of
from quotascope.pipeline.rates import EmptyHistory
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.runs.blame import blame, pools_of, report, sentences
from quotascope.pipeline.runs.blame import document as document_of
from quotascope.pipeline.table import Table

from .logs import BEGIN_MS, row, saturated, stored


def between(whole: Intervals, begin_us: int, end_us: int) -> Intervals:
    return whole.only((whole.enqueued < end_us) & (whole.released >= begin_us))


def test_the_sentence_that_matters(tmp_path: Path) -> None:
    """A busy time says which client held how much of a broker's handler time, when, and how long all others waited."""
    answer = blame(stored(tmp_path, saturated()), threads=1)
    assert sentences(answer) == [
        (
            "Between 00:00:20 and 00:00:40 dana / notebook held 70 % of broker 2's handler time; "
            "10 other clients waited 1.2 s longer each."
        )
    ]
    matrix = matrix_of(answer, 0)
    assert (matrix.culprits[0], matrix.culprits[-1]) == ("dana / notebook", "not in the log")
    assert matrix_of(answer, 0, "topic").culprits[0] == "raw"
    assert matrix_of(answer, 0, "api").culprits[0] == "Produce"
    assert {type(name) for name in (*matrix.culprits, *matrix.victims)} == {str}, "not a type of NumPy"


def test_a_client_that_waits_for_itself(tmp_path: Path) -> None:
    """
    A client's waits for itself are counted apart from other clients' waits for it.

    Clients without a row have such figures, too.
    """
    answer = blame(stored(tmp_path, saturated()), threads=1)
    matrix = matrix_of(answer, 0)
    itself = matrix.waits[0][matrix.victims.index("dana / notebook")]
    assert matrix.own_waits[0] == itself > sum(matrix.waits[0]) - itself > 0
    assert matrix.own_waits[-1] == 0
    assert "others" not in {*matrix.culprits, *matrix.victims}, "each has its own row and column"
    few = matrix_of(answer, 0, limit=1)
    assert (few.victims[-1], few.culprits[1:]) == ("others", ["others", "not in the log"])
    assert sum(few.own_waits) == sum(matrix.own_waits)
    page = html(report(answer))
    assert "waited by others" in page
    assert "others</td>" not in page


def test_names_are_kept(tmp_path: Path) -> None:
    """A broker's name keeps its case, and two topics that begin alike stay two: names may have 249 characters."""
    long = ["x" * 200 + letter for letter in "ab"]
    rows = [
        {**entry, "broker": "East-1", "traffic": [{"topic": long[number // 2 % 2], "id": None, "bytes": 9}]}
        for number, entry in enumerate(saturated())
    ]
    answer = blame(stored(tmp_path, rows), threads=1)
    assert ">Broker East-1</h2>" in html(report(answer))
    assert sorted(matrix_of(answer, 0, "topic").culprits[:2]) == long


def test_parts_add_up_to_the_waits(tmp_path: Path) -> None:
    """
    Parts add up in each table, at any number of rows shown, and in JSON.

    A request of unknown queue time is counted apart.
    """
    rows = [*saturated(), row(500, None, 5, "old"), row(900, 2.0, 5, "lone", broker="3")]
    answer = blame(stored(tmp_path, rows), threads=1)
    waits = round(1e6 * sum(entry["queue_time_ms"] or 0.0 for entry in rows))
    document = document_of(answer)
    for sums in (answer.sums.matrix, answer.sums.timeline):
        assert sum(sums["wait_ns"].to_numpy().tolist()) == waits
    assert sum(cell["wait_ns"] for cell in document["matrix"]) == waits
    matrices = [matrix_of(answer, pool, by, limit) for pool in range(2) for by, limit in (("client", 3), ("api", 1))]
    assert sum(sum(map(sum, matrix.waits)) for matrix in matrices) == 2 * waits
    assert sum(answer.sums.loads["requests"].to_numpy().tolist()) == len(rows) - 1
    assert [pool["requests_of_unknown_queue_time"] for pool in document["pools"]] == [1, 0]
    assert "the queue time of 1 more request is unknown" in pools_of(answer)[0][1]


def test_a_long_wait_is_blamed_when_it_was_waited(tmp_path: Path) -> None:
    """A wait of a minute behind one request is blamed in that minute, not at its end, when the waits are over."""
    rows = [row(10_000, 0.1, 60_000, "dana"), *(row(70_000 + n, 55_000.0, 1, f"app-{n}") for n in range(10))]
    answer = blame(stored(tmp_path, rows), threads=1)
    assert sentences(answer) == [
        (
            "Between 00:00:15 and 00:01:10 dana / app held 100 % of broker 2's handler time; "
            "10 other clients waited 55 s longer each."
        )
    ]
    queued: Counter[int] = Counter()
    for entry in answer.sums.timeline.to_pylist():
        queued[entry["slot"]] += entry["wait_ns"]
    assert max(queued.values()) == 10 * 1_000_000_000


def test_times_of_a_sentence_show_what_is_shorter_than_a_minute(tmp_path: Path) -> None:
    """Sentences about a log of hours, with slots of 10 s, have times with seconds."""
    rows = [*saturated(), row(7_200_000, 0.1, 1, "late")]
    assert sentences(blame(stored(tmp_path, rows), threads=1))[0].startswith("Between 00:00:20 and 00:00:40 dana")


def test_a_period_is_a_part_of_the_whole(tmp_path: Path) -> None:
    """A period has the whole log's sums in its slots, with holdings and waits across its ends."""
    folder = stored(tmp_path, [*saturated(), row(41_000, 2_000.0, 3_000, "across"), row(39_000, 20_000.0, 1, "late")])
    begin_ms, end_ms = BEGIN_MS + 22_500, BEGIN_MS + 42_700
    whole = blame(folder, threads=1)
    part = blame(folder, (begin_ms / 1_000, end_ms / 1_000), threads=1)
    assert (part.plan.begin_us, part.plan.end_us, part.plan.slot_us) == (1_000 * begin_ms, 1_000 * end_ms, 1_000_000)
    assert part.plan.head.clients[0] == whole.plan.head.clients[0]
    inner = (pc.field("slot") > begin_ms // 1_000) & (pc.field("slot") < end_ms // 1_000)
    for of_whole, of_part in ((whole.sums.timeline, part.sums.timeline), (whole.sums.loads, part.sums.loads)):
        assert of_part.filter(inner).equals(of_whole.filter(inner))
        assert set(of_part["slot"].to_pylist()) <= set(range(begin_ms // 1_000, end_ms // 1_000 + 1))
    assert sentences(part)[0].startswith("Between 00:00:22 and 00:00:40 dana / notebook held 70 % of broker 2's")


def test_a_period_has_its_own_requests(tmp_path: Path) -> None:
    """
    A period counts requests of unknown queue time, too.

    Names of topics are those of any time, and an empty period is an error.
    """
    by_id = {"traffic": [{"topic": None, "id": "T", "bytes": 1}]}
    rows = [row(1_000 * second, None if second % 2 else 0.5, 1, f"u{second}", **by_id) for second in range(10)]
    named = row(86_400_000, 0.1, 1, "tomorrow", topic_ids=[{"topic": "orders", "id": "T"}])
    folder = stored(tmp_path, rows, [named])
    answer = blame(folder, (BEGIN_MS / 1_000 + 1.5, BEGIN_MS / 1_000 + 5.5))
    assert [(name.user, name.topic) for name in answer.plan.head.names] == [(f"u{n}", "orders") for n in range(2, 6)]
    assert "the queue time of 2 more requests is unknown" in pools_of(answer)[0][1]
    for empty_span in ((0.0, 1.0), (BEGIN_MS / 1_000 + 50, BEGIN_MS / 1_000 + 60)):
        with pytest.raises(EmptyHistory, match="no request in this period"):
            blame(folder, empty_span)


def test_names_of_topics_need_no_other_table(tmp_path: Path) -> None:
    """Topic names of an ingest that was killed are known, whether or not the requests were compacted then."""
    by_id = {"traffic": [{"topic": None, "id": "T", "bytes": 1}]}
    folder = stored(tmp_path, [row(0, 0.5, 1, "u", **by_id)])
    requests = table_of(folder, "requests", REQUESTS)
    named = row(86_400_000, 0.1, 1, "u", topic_ids=[{"topic": "orders", "id": "T"}])
    append(requests, "killed", pa.Table.from_pylist([named], REQUESTS))

    def topics() -> set[str]:
        return {name.topic for name in blame(folder).plan.head.names}

    assert topics() == {"orders", ""}
    requests.compact()
    requests.clean(0)
    assert topics() == {"orders", ""}


def test_threads_are_estimated_by_the_busiest_second(tmp_path: Path) -> None:
    """The number of threads is estimated from the log, and the report calls it an estimate."""
    two = [{**request, "user": "erin"} for request in saturated() if request["client_id"] == "notebook"]
    answer = blame(stored(tmp_path, [*saturated(), *two]))
    assert answer.plan.threads == [2]
    assert "2 handler threads (the most that the log shows busy" in pools_of(answer)[0][1]


def crowd(count: int, *, span_ms: int, wait_ms: float, users: int) -> list[dict[str, Any]]:
    """Requests with waits and holdings of all lengths."""
    random = np.random.default_rng(7)
    times, whose = random.integers(0, span_ms, count), random.integers(0, users, count)
    waits, holdings = (random.exponential(mean, count).round(3) for mean in (wait_ms, 0.7 * wait_ms))
    columns = zip(times, waits, holdings, whose, strict=True)
    return [row(start, queued, held, f"u{user}") for start, queued, held, user in columns]


def every_slot(answer: Blame) -> list[tuple[int, ...]]:
    """
    Return the busy times, by looking at each pool, client and slot.

    Pool, client, first and last slot, victims, and waits in ns.
    """
    times: list[tuple[int, ...]] = []
    for pool, client in product(range(len(answer.plan.threads)), range(len(answer.plan.head.clients[0]))):
        of_pool = pc.field("pool") == pool
        waits = answer.sums.timeline.filter(of_pool & (pc.field("victim") != client)).to_pylist()
        loads = answer.sums.loads.filter(of_pool & (pc.field("client") != client)).to_pylist()
        caused = [wait for wait in waits if wait["culprit"] == client]
        groups: list[list[int]] = []
        for slot in sorted({entry["slot"] for entry in caused}):
            waiting_ns = sum(wait["wait_ns"] for wait in waits if wait["slot"] == slot)
            count = sum(load["requests"] for load in loads if load["slot"] == slot)
            if (
                sum(entry["wait_ns"] for entry in caused if entry["slot"] == slot) >= waiting_ns / 4
                and waiting_ns >= 1e6 * count
            ):
                if not groups or slot > groups[-1][-1] + 3:
                    groups.append([])
                groups[-1].append(slot)
        for group in groups:
            of_time = [entry for entry in caused if group[0] <= entry["slot"] <= group[-1]]
            victims = {entry["victim"] for entry in of_time}
            times.append((pool, client, group[0], group[-1], len(victims), sum(entry["wait_ns"] for entry in of_time)))
    return times


def test_busy_times_of_every_pool_client_and_slot(tmp_path: Path) -> None:
    """A client is busy while it causes a quarter of the others' waits, over pauses of up to two slots."""
    rows = crowd(150, span_ms=90_000, wait_ms=400, users=8)
    answer = blame(
        stored(tmp_path, [{**entry, "broker": str(int(entry["user"][1:]) % 2)} for entry in rows]), threads=1
    )
    slot_us, first, end = answer.plan.slot_us, answer.plan.begin_us, answer.plan.end_us
    expected = every_slot(answer)
    limit = max(busy_time[-1] for busy_time in expected)
    assert len(expected) > 20
    assert sorted(
        (busy_time.pool, busy_time.client, busy_time.begin_us, busy_time.end_us, busy_time.victims, busy_time.wait_ns)
        for busy_time in busy_times(answer)
    ) == sorted(
        (pool, client, max(first, begin * slot_us), min(end, (last + 1) * slot_us), victims, waits)
        for pool, client, begin, last, victims, waits in expected
        if waits >= limit / 100
    )
    assert [time["wait_ns"] for time in document_of(answer)["busy_times"]] == [
        time.wait_ns for time in busy_times(answer)
    ]


@settings(max_examples=examples(10))
@given(piece_s=st.integers(1, 40), more=st.sampled_from([0, 3_000_000]))
def test_pieces_are_the_whole(waiting: Table, piece_s: int, more: int) -> None:
    """Sums of pieces, each with the requests that its waits need, add up to the whole's."""
    whole = merged([*read(waiting, waiting.files())])
    plan = plan_of([Survey.of(whole)], 2)
    margin, piece = MARGIN_US + more, piece_s * plan.slot_us
    first, last = (us // piece * piece for us in (plan.begin_us, plan.end_us))
    parts = [
        sums_of(between(whole, begin - margin, begin + piece + margin), plan, 0, begin, begin + piece)
        for begin in range(first, last + 1, piece)
    ]
    once = sums_of(whole, plan, 0, first, last + piece)
    whole_sums = Sums.of(added(pa.concat_tables(parts), KEY))
    assert all(each.equals(other) for each, other in zip(whole_sums, Sums.of(once), strict=True))


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = stored(tmp_path_factory.mktemp("waiting"), crowd(900, span_ms=60_000, wait_ms=300, users=30))
    return Table.open(f"{folder}/requests", schema=REQUESTS)


@given(times=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 300)), max_size=9), slot=st.integers(1, 99))
def test_times_over_slots(times: list[tuple[int, int]], slot: int) -> None:
    """Each microsecond counts in the slot that it is in."""
    begin, length = np.asarray(times, np.int64).reshape(-1, 2).T
    rows, slots, within = spread(begin, length, slot)
    answer = sorted(
        (row, start)
        for row, slot, us in zip(rows.tolist(), slots.tolist(), within.tolist(), strict=True)
        for start in [slot] * us
    )
    assert answer == sorted(
        (number, us // slot) for number, (start, us_long) in enumerate(times) for us in range(start, start + us_long)
    )


@given(
    rows=st.lists(
        st.tuples(st.integers(-2, 9), st.sampled_from([0, 1 << 20, 1 << 40]), st.integers(0, 9)), max_size=30
    ),
    far=st.sampled_from([0, 1 << 31, -(1 << 40)]),
)
def test_sums_of_equal_keys(rows: list[tuple[int, int, int]], far: int) -> None:
    """Each key has one sum, wherever the keys lie."""
    first, second, values = np.asarray(rows, np.int64).reshape(-1, 3).T
    answer = summed({"a": first + far, "b": second}, {"v": values})
    expected: Counter[tuple[int, int]] = Counter()
    for a, b, value in rows:
        expected[a + far, b] += value
    assert sorted((row["a"], row["b"], row["v"]) for row in answer.to_pylist()) == [
        (*key, expected[key]) for key in sorted(expected)
    ]


def test_nothing_to_divide(tmp_path: Path) -> None:
    """Empty folders and histories, and a release without queue times, are reported as such."""
    with pytest.raises(NoHistory):
        blame(str(tmp_path))
    History.create(str(tmp_path / "history"))
    with pytest.raises(NoTable, match="/requests: there is no table"):
        blame(str(tmp_path / "history"))
    with pytest.raises(EmptyHistory, match="the history is empty: ingest request logs first"):
        blame(stored(tmp_path / "empty", []))
    with pytest.raises(NoQueueTimes, match="has a queue time"):
        blame(stored(tmp_path, [row(0, None, 1, "old")]))


@pytest.mark.parametrize(
    ("rows", "waited"),
    [
        ([row(start * 10.0, 9.0, 9.5, "alone") for start in range(50)], "9 ms"),
        ([row(start // 2 * 50.0, 0.08, 0.5, "ab"[start % 2]) for start in range(50)], "0.08 ms"),
        ([row(start * 50.0, 0.0, 0.0, "ab"[start % 2]) for start in range(50)], "0 s"),
    ],
    ids=["waits for itself", "an idle broker", "no wait at all"],
)
def test_no_client_to_blame(tmp_path: Path, rows: list[dict[str, Any]], waited: str) -> None:
    """No client is blamed for waits for itself, for what the log lacks, or below the log's resolution."""
    answer = blame(stored(tmp_path, rows), threads=1)
    assert busy_times(answer) == []
    (said,) = sentences(answer)
    assert "less than 1 ms" in said
    assert f"Requests waited {waited} on average" in said


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """Hostile names of users, client ids, topics, brokers and listeners, of any length, are kept as they are."""
    rows = [
        {**request, "broker": HOSTILE, "listener": HOSTILE, "traffic": [{"topic": HOSTILE, "id": None, "bytes": 1}]}
        for request in saturated(HOSTILE)
    ]
    rows += [
        {**request, "client_id": "x" * 10_000, "traffic": [{"topic": None, "id": HOSTILE, "bytes": 1}]}
        for request in saturated("y" * 10_000)
    ]
    answer = blame(stored(tmp_path, rows))
    page = html(report(answer))
    assert Reader(page).kinds <= PLAIN
    assert "\x1b" not in page
    assert HOSTILE in {group["user"] for group in document_of(answer)["groups"]}
