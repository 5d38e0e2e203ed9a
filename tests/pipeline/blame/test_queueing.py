"""The queue of handler threads against a simulation by events, its fit to logs, and the effect of candidates."""

import heapq
from collections import deque
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.blame.logs import AGGRESSOR, full_load, logged, row, written
from tests.pipeline.replay.ways import WAYS, kernels
from tests.pipeline.table.rows import append
from tests.steps import steps

from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.pipeline.blame import benefit
from quotascope.pipeline.blame.benefit import Benefit, benefit_of, percentile_us
from quotascope.pipeline.blame.queueing import LoggedQueue, scale_of, waits_of
from quotascope.pipeline.history import History
from quotascope.pipeline.history.charges import history_of
from quotascope.pipeline.history.schema import PLACE
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.replay.results import lateness
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.runs.blame import blame
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.runs.whatif import what_if
from quotascope.pipeline.table import Table
from quotascope.quotas import Entity, QuotaSet
from quotascope.quotas.candidates import Candidate

requests = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 120)), min_size=1, max_size=40)


def by_events(arrivals: list[int], holds: list[int], threads: int, handover: int = 0) -> list[int]:
    """The waits, of arrivals in order, by a clock that goes from event to event."""
    queue: deque[int] = deque()
    waits, idle = [0] * len(arrivals), threads
    events = [(time, 1, number) for number, time in enumerate(arrivals)]
    heapq.heapify(events)
    while events:
        time, comes, number = heapq.heappop(events)
        if comes:
            queue.append(number)
        else:
            idle += 1
        while idle and queue:
            taken = queue.popleft()
            idle -= 1
            waits[taken] = time - arrivals[taken]
            heapq.heappush(events, (time + holds[taken] + handover, 0, taken))
    return waits


@pytest.mark.parametrize("way", WAYS)
@given(made=requests, threads=st.integers(1, 4), gone=st.integers(0, 39), handover=st.integers(0, 30))
def test_waits_are_those_of_threads_that_take_turns(
    way: str, made: list[tuple[int, int]], threads: int, gone: int, handover: int
) -> None:
    """Requests are served in their order by the first free thread, also without one of the requests."""
    arrivals, holds = (np.array(column, np.int64) for column in zip(*made, strict=True))
    present = np.arange(len(made)) != gone
    with kernels(way):
        waits = waits_of(arrivals, holds, threads, handover=handover)
        fewer = waits_of(arrivals, holds, threads, present, handover=handover)
    order = np.argsort(arrivals, kind="stable")
    expected = by_events(arrivals[order].tolist(), holds[order].tolist(), threads, handover)
    assert waits[order].tolist() == expected
    order = order[present[order]]
    without = by_events(arrivals[order].tolist(), holds[order].tolist(), threads, handover)
    assert fewer[order].tolist() == without


def busy(threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A busy log: arrivals, holding times, and queue times with 60 us to wake a thread."""
    source = np.random.default_rng(7)
    arrivals = np.cumsum(source.exponential(1_000, 5_000)).astype(np.int64)
    holds = source.exponential(800 * threads, 5_000).astype(np.int64)
    return arrivals, holds, waits_of(arrivals, holds, threads) + 60


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_queue_explains_the_waits(threads: int) -> None:
    """The queue explains all waits but for the time to wake a thread, which the log shows."""
    arrivals, holds, waits = busy(threads)
    logged_queue = LoggedQueue(arrivals, holds, waits, threads)
    assert set(logged_queue.idle_waits.tolist()) == {60}
    assert logged_queue.waits().tolist() == waits.tolist()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_threads_do_between_requests_is_measured_from_the_log(threads: int) -> None:
    """
    Unlogged work of 150 us after each request is found, also beside times of 1 ms, pauses of the JVM and a dispatch.

    Without it, the waits are too short.
    """
    source = np.random.default_rng(11)
    arrivals = np.cumsum(source.exponential(1_000, 20_000)).astype(np.int64)
    holds = source.exponential(700 * threads, len(arrivals)).astype(np.int64)
    paused = np.where(source.random(len(arrivals)) < 0.0005, 8_000, 0)
    waits = 60 + waits_of(arrivals + 60, holds + paused, threads, handover=150)
    ends = arrivals + waits + holds
    logged = ends // 1_000 * 1_000 - holds - waits
    logged_queue = LoggedQueue(logged, holds, waits, threads)
    assert 100 <= logged_queue.handover <= 200
    assert logged_queue.waits().mean() == pytest.approx(waits.mean(), rel=0.2)
    assert (waits_of(arrivals, holds, threads) + 60).mean() < 0.85 * waits.mean()


def test_threads_that_are_idle_cost_no_time() -> None:
    """Ten thousand threads are no more work than ten, also where no kernel is compiled."""
    arrivals, holds = np.arange(1_000) * 100, np.full(1_000, 250)
    with kernels("plain"):
        assert not waits_of(arrivals, holds, 10_000).any()
        few, many = (steps(partial(waits_of, arrivals, holds, threads)) for threads in (10, 10_000))
    assert many == few


def test_what_no_queue_explains_stays() -> None:
    """Without another client's requests, a client's waits for its own and the time to wake a thread remain."""
    arrivals, holds, waits = busy(1)
    of_others = np.arange(len(arrivals)) % 2 == 0
    logged_queue = LoggedQueue(arrivals, holds, waits, 1).waits(np.zeros_like(arrivals), of_others)
    alone = waits_of(arrivals[of_others], holds[of_others], 1) + 60
    assert logged_queue[of_others].tolist() == alone.tolist()


def test_a_request_that_comes_to_fewer_others_is_taken_as_fast_as_in_quiet_hours() -> None:
    """
    The busy broker needs 200 us to wake a thread, the quiet one 40 us.

    Without most of its requests the busy one needs 40 us, too.
    """
    busy = np.arange(2_000) * 5_000
    arrivals = np.r_[busy, busy[-1] + 1_000_000 + np.arange(200) * 50_000]
    waits = np.where(np.arange(2_200) < 2_000, 200, 40)
    queue = LoggedQueue(arrivals, np.full(2_200, 100), waits, 1)
    few = np.arange(2_200) % 10 == 0
    assert np.median(queue.waits()[:2_000]) == 200
    assert np.median(queue.waits(present=few)[few]) == 40


@pytest.mark.parametrize("way", WAYS)
def test_a_client_sends_its_next_request_when_the_last_is_answered(way: str) -> None:
    """
    A later answer delays all following requests of its connection.

    Requests of others are not moved, and wait for it.
    """
    arrivals = np.array([0, 15, 30, 18], np.int64)
    holds = np.array([10, 10, 10, 1], np.int64)
    connections = np.array([0, 0, 0, -1])
    with kernels(way):
        logged_queue = LoggedQueue(arrivals, holds, waits_of(arrivals, holds, 1), 1)
        late = np.array([0, 20, 20, 0])
        waits = logged_queue.waits(late, np.ones(4, bool), connections)
        unmoved = logged_queue.waits(0 * late, np.ones(4, bool), connections)
    assert unmoved.tolist() == logged_queue.waits().tolist() == [0, 0, 0, 7]
    # The second comes at 10 + 5 + 20 and the third 5 after it has left, as in the log.
    assert waits.tolist() == [0, 0, 0, 0]
    with kernels(way):
        burst = LoggedQueue(np.array([0, 10, 11, 12]), np.array([10, 10, 5, 5]), np.array([0, 0, 0, 0]), 1)
        answered = waits_of(
            np.zeros(2, np.int64), np.array([10, 10]), 1, None, (np.zeros(2, np.int64), np.array([0, 2])), 5
        )
        assert answered.tolist() == [0, 3], "answered at 10, sent at 12, while the thread is busy until 15"
        assert burst.waits(np.zeros(4, np.int64), np.ones(4, bool), np.array([0, 0, 1, 1])).tolist() == [0, 0, 9, 0]


@pytest.mark.parametrize(
    ("simulated", "without", "logged", "scale"),
    [
        ([1_000, 2_000], [100, 200], [1_500, 3_000], 4_200 / 2_700),
        # most of the wait is not theirs
        ([1_000, 2_000], [900, 1_100], [1_500, 3_000], 1.0),
        # the log has less than the others alone
        ([1_000, 2_000], [0, 200], [100, 50], 0.0),
        # below the clock of the log
        ([60], [0], [120], 1.0),
        # no request
        ([], [], [], 1.0),
    ],
)
def test_what_clients_cause_is_as_long_as_in_the_log(
    simulated: list[int], without: list[int], logged: list[int], scale: float
) -> None:
    """A factor is found only if the clients cause most of the wait."""
    logged_queue = scale_of(np.array(simulated, float), np.array(without, float), np.array(logged, np.int64))
    assert logged_queue == pytest.approx(scale)


def candidates(*limits: float) -> list[Candidate]:
    quotas: list[dict[Entity, dict[str, float]]] = [{}]
    quotas += [{QuotaEntity(AGGRESSOR): {"request_percentage": limit}} for limit in limits]
    return [Candidate(name=str(n), quotas=QuotaSet(each)) for n, each in enumerate(quotas)]


def logged_queue(folder: str, mode: Mode = Mode.OPEN_LOOP, threads: int | None = None) -> Benefit:
    return benefit_of(folder, candidates(100, 20, 1), mode, map, threads=threads)


def test_a_lower_limit_of_one_client_saves_the_others_more(tmp_path: Path) -> None:
    """A lower limit of one client saves the others more, and no throttle saves nothing."""
    folder = written(tmp_path, logged(60))
    opened, closed = (logged_queue(folder, mode) for mode in Mode)
    (queue,) = opened.brokers
    assert (queue.threads, queue.refusal) == (1, None)
    assert blame(folder).plan.threads == [1]
    none, loose, strict, least = opened.saved.values()
    assert none == loose == 0
    assert strict is not None
    assert least is not None
    assert 0.5 < strict < least < 1
    later = closed.saved["2"]
    assert later is not None
    assert 0.2 < later < 1
    assert opened.notes == (
        "Error of the simulated queue times against the log: broker 1 (1 handler thread) +0 %.",
        (
            "The number of handler threads is the most that the log shows busy in a second; --io-threads sets "
            "num.io.threads."
        ),
    )


@pytest.mark.parametrize(
    ("constant", "threads", "why"),
    [
        ({"queue_time_ms": None}, None, "The wait is unknown: the log has no queue times (requestQueueTimeMs)."),
        ({"api_key": 63}, None, "The wait is unknown: there is no request of a broker;"),
        ({}, 9, (
            "Left out of the wait: a queue with 9 handler threads does not explain the queue times of "
            "broker 1: its error is -")),
    ]
)  # fmt: skip
def test_nothing_is_predicted_where_queue_times_are_unknown_or_not_explained(
    tmp_path: Path, constant: dict[str, Any], threads: int | None, why: str
) -> None:
    """The answer is unknown, and says why; never zero."""
    rows = logged(20)
    kept = rows.drop_columns([name for name in constant if name in rows.column_names])
    answer = logged_queue(written(tmp_path, kept, **constant), threads=threads)
    assert set(answer.saved.values()) == {None}
    assert answer.notes[0].startswith(why)
    assert ("wait for a CPU" in answer.notes[0]) == (threads is not None)


def test_clients_that_wait_for_answers_are_explained_at_full_load(tmp_path: Path) -> None:
    """
    A closed loop, where each request follows its last answer, explains waits at full load.

    With arrivals as logged, the error adds up from request to request, and is reported.
    """
    folder = written(tmp_path, full_load(20_000))
    opened, closed = (logged_queue(folder, mode) for mode in Mode)
    (queue,) = closed.brokers
    assert queue.logged_us / queue.requests == pytest.approx(4_500, rel=0.1)
    assert (abs(queue.error) < 0.1, queue.refusal, closed.saved["0"]) == (True, None, 0.0)
    assert closed.predicted(0, 0.5) == pytest.approx([percentile_us(queue.logged_waits[0], 0.5)], rel=0.1)
    assert opened.brokers[0].error > 100
    assert opened.notes[-1].endswith(
        " %, as if the broker had more threads than were given, or in open loop near saturation."
    )
    assert set(opened.saved.values()) == {None}


def test_a_node_that_is_a_controller_alone_is_no_broker(tmp_path: Path) -> None:
    """A controller has no queue of clients to explain; without any other node, no quota is tried in vain."""
    folder = written(tmp_path, logged(20))
    controller = row(1_000, 0.1, 1, "", broker="9", listener="CONTROLLER", api_key=63)
    table = Table.open(f"{folder}/requests", schema=REQUESTS)
    append(table, "controller", pa.Table.from_pylist([controller], REQUESTS))
    answer = logged_queue(folder)
    assert [broker.broker for broker in answer.brokers] == ["1"]
    assert "broker 9" not in " ".join(answer.notes)


def test_a_history_without_requests_says_nothing_about_waits(tmp_path: Path) -> None:
    """A history without requests, in all or on some days, is an error about waits."""
    assert logged_queue(str(tmp_path)).brokers == ()
    folder = written(tmp_path, logged(5))
    Table.open(f"{folder}/requests", schema=REQUESTS).drop_before(date(2030, 1, 1))
    assert logged_queue(folder).notes == (
        "The wait is unknown: there is no request of a broker; ingest request logs of brokers.",
    )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("begin_ms", "replayed_days"), [(0, 0), (-30_000, 2)])
def test_a_history_of_one_day_is_replayed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, begin_ms: int, replayed_days: int
) -> None:
    """
    The wait saved for others is the same whether the replay is done for it again or not.

    It is not, unless the history has two UTC days.
    """
    rows = logged(60)
    for name in ("timestamp", "completed"):
        moved = pa.array(rows[name].to_numpy() + begin_ms)
        rows = rows.set_column(rows.column_names.index(name), name, moved)
    folder = written(tmp_path, rows)
    expected = logged_queue(folder, mode)
    replays: list[int] = []

    def counted(*arguments: Any) -> Any:
        replays.append(1)
        return lateness(*arguments)

    monkeypatch.setattr(benefit, "lateness", counted)
    answer = what_if(folder, candidates(100, 20, 1), mode, engine=EngineChoice.LOCAL, wait_saved=True).summary.benefit
    assert answer is not None
    assert len(replays) == replayed_days
    assert (answer.saved, answer.values(), answer.notes) == (expected.saved, expected.values(), expected.notes)
    for queue, other in zip(answer.brokers, expected.brokers, strict=True):
        for name in ("others_us", "predicted_us", "logged_waits", "predicted_waits"):
            assert getattr(queue, name).tolist() == getattr(other, name).tolist()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", PLACE)
@pytest.mark.parametrize("has_requests", [True, False])
def test_a_row_without_a_place_is_replayed(tmp_path: Path, name: str, mode: Mode, *, has_requests: bool) -> None:
    """
    Rows that another program appended, without a file or a position, do not end the replay.

    They may be requests, or rows of the history alone. The wait saved for others is that of the day's own replay.
    """
    rows = logged(40)
    folder = written(tmp_path / "usage", rows.slice(0, len(rows) // 2))
    requests = Table.open(f"{folder}/requests", schema=REQUESTS)
    later = Table.open(f"{written(tmp_path / 'later', rows.slice(len(rows) // 2))}/requests", schema=REQUESTS).read()
    field = REQUESTS.field(name)
    without = later.set_column(REQUESTS.get_field_index(name), field, pa.nulls(len(later), field.type))
    history = History.open(folder)
    if has_requests:
        append(requests, "appended", without)
        history.update(requests)
    else:
        append(history.detail, "appended", history_of(without))
    expected = logged_queue(folder, mode)
    answer = what_if(folder, candidates(100, 20, 1), mode, engine=EngineChoice.LOCAL, wait_saved=True)
    assert answer.summary.benefit is not None
    assert answer.summary.benefit.saved == expected.saved
    assert answer.results.equals(what_if(folder, candidates(100, 20, 1), mode, engine=EngineChoice.LOCAL).results)


def test_requests_that_are_not_in_the_history_yet_are_replayed(tmp_path: Path) -> None:
    """Requests that an interrupted ingest has left out of the history count for the wait that is saved."""
    rows = logged(40)
    folder = written(tmp_path / "usage", rows.slice(0, len(rows) // 2))
    other = Table.open(f"{written(tmp_path / 'other', rows.slice(len(rows) // 2))}/requests", schema=REQUESTS)
    append(Table.open(f"{folder}/requests", schema=REQUESTS), "later", other.read())
    expected = logged_queue(folder)
    answer = what_if(
        folder, candidates(100, 20, 1), Mode.OPEN_LOOP, engine=EngineChoice.LOCAL, wait_saved=True
    ).summary.benefit
    assert answer is not None
    assert answer.saved == expected.saved
