"""The closed loop is what clients that wait do to brokers of the engine."""

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.builders.requests import CREATE_TOPICS, FETCH, METADATA, PRODUCE, Request
from tests.pipeline.replay.engine import Simulation
from tests.pipeline.replay.histories import candidate, history, mixes, quota_sets, requests
from tests.pipeline.replay.ways import WAYS, kernels
from tests.steps import steps
from tests.strategies import examples

from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pipeline.replay import Mode, ReplaySettings, closed_loop, replay
from quotascope.pipeline.replay.closed_loop import NEVER
from quotascope.pipeline.replay.compiled import run
from quotascope.pipeline.replay.results import lateness

ALICE = QuotaEntity("alice")
DRAIN_MS = 60_000
ALIKE = ReplaySettings()
SLOW_FETCH = Request(after_ms=10, api_key=FETCH, cost=900_000, request_us=200_000)
SLOW_CREATE = Request(after_ms=5, api_key=CREATE_TOPICS, cost=30, request_us=90_000)
TIGHT = {ALICE: {"request_percentage": 0.5, "consumer_byte_rate": 40_000.0, "controller_mutation_rate": 2.0}}
QUICK_FETCH = replace(SLOW_FETCH, cost=1_000, request_us=100)
LARGE_FETCH = Request(api_key=FETCH, cost=5_000_000, request_us=1_000)
BUSY = Request(after_ms=1, api_key=METADATA, request_us=900_000)


def closed(requests_made: list[Request], quotas: Any, **options: Any) -> dict[str, dict[str, Any]]:
    results = replay(history(requests_made), [candidate(quotas)], Mode.CLOSED_LOOP, **options)
    return {row["quota_type"]: row for row in results.to_pylist()}


@pytest.mark.parametrize("way", WAYS)
@given(
    made=st.lists(
        # one client id: groups end at one time, and so does the simulation
        requests.map(lambda requests_made: replace(requests_made, user="alice", client_id="app", wait_ms=0)),
        min_size=1,
        max_size=25,
    ),
    throttles=st.lists(st.sampled_from((0, 0, 30, 5_000)), min_size=25, max_size=25),
    quotas=quota_sets,
    mix=mixes,
)
@example(made=[SLOW_FETCH] * 3, throttles=[0] * 3, quotas=TIGHT, mix=ALIKE)
@example(made=[SLOW_CREATE, SLOW_FETCH] * 3, throttles=[0] * 6, quotas=TIGHT, mix=ALIKE)
# a Fetch whose own time is above the request quota passes when that is out of all windows, however often it was
# repeated
@example(
    made=[replace(SLOW_FETCH, cost=1_000), QUICK_FETCH, QUICK_FETCH],
    throttles=[0] * 3,
    quotas={ALICE: {"request_percentage": 0.5}},
    mix=ALIKE,
)
# a refused mutation that is repeated asks its bucket each time, and charges the time of its threads the first time
@example(
    made=[SLOW_CREATE] * 3,
    throttles=[0] * 3,
    quotas={ALICE: {"controller_mutation_rate": 2.0, "request_percentage": 2.0}},
    mix=ALIKE,
)
# a Fetch larger than all whole windows allow is cut as brokers cut it, and not stuck for ever; each part is charged its
# time
@example(made=[LARGE_FETCH], throttles=[0], quotas={ALICE: {"consumer_byte_rate": 150_000.0}}, mix=ALIKE)
@example(
    made=[replace(LARGE_FETCH, request_us=400_000), replace(BUSY, after_ms=500, connection=2, request_us=1_000)],
    throttles=[0] * 2,
    quotas={ALICE: {"consumer_byte_rate": 150_000.0, "request_percentage": 2.0}},
    mix=ALIKE,
)
# the network thread's time is charged when the response has left
@example(
    made=[replace(BUSY, request_us=1_000, network_us=900_000), replace(BUSY, after_ms=500, request_us=1_000)],
    throttles=[0] * 2,
    quotas={ALICE: {"request_percentage": 5.0}},
    mix=ALIKE,
)
# a throttle by the request quota holds back whatever comes next on the connection
@example(made=[BUSY] * 4, throttles=[0] * 4, quotas={ALICE: {"request_percentage": 5.0}}, mix=ALIKE)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equals_clients_of_the_engine(
    way: str, made: list[Request], throttles: list[int], quotas: Any, mix: ReplaySettings
) -> None:
    """
    Throttles, refusals, delays and unsent requests are those of a plain simulation with real quota managers.

    Each broker is of a release of its own.
    """
    made = [replace(request, throttle_ms=throttle_ms) for request, throttle_ms in zip(made, throttles, strict=False)]
    table, chosen = history(made), candidate(quotas)
    mix = replace(mix, drain_ms=DRAIN_MS, per_broker=False)
    expected = Simulation(table, chosen, mix)
    with kernels(way):
        results = replay(table, [chosen], Mode.CLOSED_LOOP, mix)
    for row in results.to_pylist():
        entity = row["user"], row["client_id"]
        what = (*entity, row["quota_type"])
        assert row["throttled_requests"] == expected.throttled[what]
        assert row["throttled_ms"] == expected.throttled_ms[what]
        assert row["late_ms"] == expected.late_ms[entity]
        if row["quota_type"] == "controller_mutation":
            assert row["refused_requests"] == expected.refused[entity]
            assert row["refused_mutations"] == expected.refused_mutations[entity]
        if row["quota_type"] == "request":
            assert row["unsent_requests"] == expected.unsent[entity]


def test_next_request_waits_for_the_mute() -> None:
    """The gap of a connection is max(think time, mute + reaction); other connections of the client do not wait."""
    big = Request(after_ms=0, api_key=PRODUCE, cost=2_000_000, throttle_ms=500)
    small = replace(big, after_ms=700, cost=10, throttle_ms=0)
    second_connection = replace(small, after_ms=100, connection=2)
    row = closed([big, small, second_connection], {ALICE: {"producer_byte_rate": 100_000.0}})["produce"]
    # 2 MB in 10 s are twice the limit: 10 s of mute, after which the client takes as long as after the logged one: 200
    # ms.
    assert (row["throttled_requests"], row["delayed_requests"], row["delayed_bytes"]) == (3, 1, 10)
    assert row["late_ms"] == 10_000 + 200 - 700


def test_an_unknown_throttle_is_no_time() -> None:
    """The log's -1 for an unknown throttle time is no millisecond of the client's own waiting."""
    big, small = (
        Request(after_ms=after_ms, api_key=PRODUCE, cost=cost) for after_ms, cost in ((0, 2_000_000), (700, 10))
    )
    quotas = {ALICE: {"producer_byte_rate": 100_000.0}}
    assert closed([replace(big, throttle_ms=-1), small], quotas) == closed([big, small], quotas)


def test_throttled_fetch_is_asked_for_again() -> None:
    """A Fetch past the limit is answered empty, given back, and brings its bytes when the mute is over."""
    fetch = Request(after_ms=10, api_key=FETCH, cost=900_000)
    row = closed([fetch, fetch], {ALICE: {"consumer_byte_rate": 100_000.0}})["fetch"]
    assert (row["delayed_requests"], row["delayed_bytes"], row["unsent_requests"]) == (1, 900_000, 0)
    assert row["late_ms"] > 5_000


def test_replay_ends() -> None:
    """Requests that would take longer than the drain are given up, and counted as not sent."""
    fetch = Request(api_key=FETCH, cost=5_000_000)
    short = ReplaySettings(drain_ms=10_000)
    row = closed([fetch, fetch], {ALICE: {"consumer_byte_rate": 1_000.0}}, settings=short)["fetch"]
    assert row["unsent_requests"] == 2
    assert 9_900_000 < row["unsent_bytes"] < 10_000_000


def test_a_fetch_under_a_single_window() -> None:
    """
    A Fetch comes in batches, about as fast as the limit.

    All bytes of a window at once would be refused each second, to the end of the replay.
    """
    chosen = candidate({ALICE: {"consumer_byte_rate": 1e5}}, windows=WindowConfig(samples=1, window_seconds=1))
    (row,) = replay(history([Request(api_key=FETCH, cost=10_000_000)]), [chosen], Mode.CLOSED_LOOP).to_pylist()
    assert row["unsent_requests"] == 0
    assert 100_000 < row["late_ms"] < 115_000


def test_a_fetch_in_many_parts_is_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with many steps is work enough to be compiled."""
    works: list[int] = []

    def counted(*arguments: Any, work: int) -> Any:
        works.append(work)
        return run(*arguments, work=work)

    monkeypatch.setattr(closed_loop, "run", counted)
    short = ReplaySettings(drain_ms=3_600_000)
    closed([Request(api_key=FETCH, cost=1_000_000)], {ALICE: {"consumer_byte_rate": 100.0}}, settings=short)
    assert max(works) > 1_000


def test_a_refusal_for_ever_is_no_reason_to_ask_again() -> None:
    """
    Under a limit of 0 a mutation is refused once, and not sent again.

    The first is granted, as the bucket has no debt.
    """
    create = Request(after_ms=1_000, api_key=CREATE_TOPICS, cost=10, request_us=1_000)
    row = closed([create] * 4, {ALICE: {"controller_mutation_rate": 0.0}})["controller_mutation"]
    assert (row["refused_requests"], row["throttled_ms"], row["unsent_requests"]) == (1, 0, 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_whose_time_wraps_around_is_waited_for(way: str) -> None:
    """
    A throttle of 34 days is negative in 32 bits, as none.

    The mutation is asked for again after the 34 days, not each millisecond.
    """
    create = Request(api_key=CREATE_TOPICS, cost=30)
    year = replace(create, after_ms=365 * 86_400_000, connection=2)
    with kernels(way):
        row = closed([create, create, year], {ALICE: {"controller_mutation_rate": 1e-5}})["controller_mutation"]
    assert (row["refused_requests"], row["throttled_ms"], row["unsent_requests"]) == (1, 0, 0)
    assert row["late_ms"] == pytest.approx(30 / 1e-5 * 1_000, rel=1e-4)


def test_requests_that_the_log_shows_twice_are_sent_once() -> None:
    """Requests that the log shows as answered empty or refused are left out: their retries are in the log, too."""
    fetch = Request(after_ms=10, api_key=FETCH, cost=1_000)
    empty = replace(fetch, withheld=True, throttle_ms=500, request_us=5)
    create = Request(after_ms=10, api_key=CREATE_TOPICS, cost=1)
    refused = replace(create, withheld=True)
    quotas = {ALICE: {"consumer_byte_rate": 1e9, "controller_mutation_rate": 1e9}}
    results = closed([empty, fetch, refused, create], quotas)
    assert results["fetch"]["unsent_requests"] == 0
    assert results["controller_mutation"]["refused_requests"] == 0
    assert results["fetch"]["late_ms"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_granted_part_of_a_refused_mutation_is_sent(way: str) -> None:
    """Mutations that the log shows as granted of a refused request are charged, and the repetition has the others."""
    part = Request(api_key=CREATE_TOPICS, cost=100, withheld=True, granted=90)
    repetition = replace(part, after_ms=20_000, cost=10, withheld=False)
    with kernels(way):
        results = closed([part, repetition], {ALICE: {"controller_mutation_rate": 1.0}})
    row = results["controller_mutation"]
    # a burst of 11: 79 of debt, of which 59 are left after 20 s
    assert row["amount"] == 100
    assert (row["refused_requests"], row["refused_mutations"]) == (1, 10)
    assert 59_000 <= row["late_ms"] < 59_100


def numbered(requests_made: list[Request]) -> pa.Table:
    rows = history(requests_made)
    place = rows.column_names.index("position")
    return rows.set_column(place, "position", pa.array(range(len(rows)), pa.int64()))


@given(
    made=st.lists(requests.map(lambda requests_made: replace(requests_made, wait_ms=0)), min_size=1, max_size=25),
    quotas=quota_sets,
)
def test_requests_come_as_the_closed_loop_moves_them(made: list[Request], quotas: Any) -> None:
    """The latest request of each entity is as late as the replay says, and lost ones are not sent."""
    rows, tried = numbered(made), [candidate(quotas)]
    late = lateness(rows, tried, Mode.CLOSED_LOOP, len(rows))[0]
    for results in replay(rows, tried, Mode.CLOSED_LOOP).to_pylist():
        numbers_of_entity = [
            n for n, each in enumerate(made) if (each.user, each.client_id) == (results["user"], results["client_id"])
        ]
        assert results["late_ms"] == max(0, *late[numbers_of_entity].tolist())
        if results["quota_type"] == "request":
            timed = [n for n in numbers_of_entity if made[n].request_us is not None]
            never = (late[timed] == NEVER).sum()
            # a large Fetch comes in parts, and a refused mutation again: of these some may be left
            partly = sum(made[n].api_key in {FETCH, CREATE_TOPICS} for n in timed)
            assert never <= results["unsent_requests"] <= never + partly


@pytest.mark.parametrize(("limit", "kept"), [(20.0, 1.0), (5.0, 0.5), (1.0, 0.1)])
def test_what_is_above_a_limit_never_comes_in_an_open_loop(limit: float, kept: float) -> None:
    """
    An open loop keeps as many requests of a busy client as its limit allows, evenly.

    It keeps all requests of other clients.
    """
    busy = Request(after_ms=5, api_key=METADATA, request_us=1_000, network_us=0)
    idle = replace(busy, user="bob")
    rows = numbered([busy, idle] * 5_000)
    quotas = {QuotaEntity("alice"): {"request_percentage": limit}}
    late = lateness(rows, [candidate({}), candidate(quotas)], Mode.OPEN_LOOP, len(rows))
    assert (late[0] == 0).all()
    assert (late[1][1::2] == 0).all()
    coming = late[1][4_000::2] == 0
    assert coming.mean() == pytest.approx(kept, abs=0.01)
    assert coming[: len(coming) // 2].mean() == pytest.approx(kept, abs=0.01)


def test_each_candidate_takes_as_long() -> None:
    """Each candidate takes equally long, however many there are."""
    table = history([Request(api_key=CREATE_TOPICS, cost=1)])
    tried = [candidate({QuotaEntity("alice"): {"controller_mutation_rate": 1.0}})]
    with kernels("plain"):
        few, many = (steps(partial(replay, table, number * tried, Mode.CLOSED_LOOP)) for number in (20, 80))
    assert many < 4.4 * few
