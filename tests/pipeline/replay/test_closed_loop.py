"""The closed loop is what clients that wait do to brokers of the engine."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.pipeline.replay.clients import Simulation
from tests.pipeline.replay.histories import (
    CREATE_TOPICS,
    FETCH,
    METADATA,
    PRODUCE,
    Request,
    candidate,
    history,
    quota_sets,
    requests,
)
from tests.pipeline.replay.ways import WAYS, kernels
from tests.strategies import examples

from quotascope.metrics import QuotaEntity
from quotascope.pipeline.replay import Mode, ReplaySettings, replay

ALICE = QuotaEntity("alice")
DRAIN_MS = 60_000
SLOW_FETCH = Request(after_ms=10, api_key=FETCH, cost=900_000, request_us=200_000)
SLOW_CREATE = Request(after_ms=5, api_key=CREATE_TOPICS, cost=30, request_us=90_000)
TIGHT = {
    ALICE: {
        "request_percentage": 0.5,
        "consumer_byte_rate": 40_000.0,
        "controller_mutation_rate": 2.0,
    }
}


def closed(made: list[Request], quotas: Any, **more: Any) -> dict[str, dict[str, Any]]:
    """The results of one entity by quota type."""
    found = replay(history(made), [candidate(quotas)], Mode.CLOSED_LOOP, **more)
    return {row["quota_type"]: row for row in found.to_pylist()}


@pytest.mark.parametrize("way", WAYS)
@given(
    made=st.lists(
        # one client id: groups end at one time, and so does the simulation
        requests.map(lambda made: replace(made, user="alice", client_id="app", wait_ms=0)),
        min_size=1,
        max_size=25,
    ),
    throttles=st.lists(st.sampled_from((0, 0, 30, 5_000)), min_size=25, max_size=25),
    quotas=quota_sets,
)
@example(made=[SLOW_FETCH] * 3, throttles=[0] * 3, quotas=TIGHT)
@example(made=[SLOW_CREATE, SLOW_FETCH] * 3, throttles=[0] * 6, quotas=TIGHT)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equals_clients_of_the_engine(way: str, made: list[Request], throttles: list[int], quotas: Any) -> None:
    """Throttles, refusals, delays and what is never sent are those of a plain simulation with real quota managers."""
    made = [replace(request, throttle_ms=throttle_ms) for request, throttle_ms in zip(made, throttles, strict=False)]
    table, chosen = history(made), candidate(quotas)
    expected = Simulation(table, chosen, DRAIN_MS).run()
    with kernels(way):
        found = replay(table, [chosen], Mode.CLOSED_LOOP, ReplaySettings(drain_ms=DRAIN_MS))
    for row in found.to_pylist():
        entity = row["user"], row["client_id"]
        what = (*entity, row["quota_type"])
        assert row["throttled_requests"] == expected.throttled[what]
        assert row["throttled_ms"] == expected.throttled_ms[what]
        assert row["late_ms"] == expected.late_ms.get(entity, 0)
        if row["quota_type"] == "controller_mutation":
            assert row["rejected_requests"] == expected.rejected[entity]
        if row["quota_type"] == "request":
            assert row["unsent_requests"] == expected.unsent[entity]


def test_next_request_waits_for_the_mute() -> None:
    """The gap of a connection is max(think time, mute + reaction); other connections of the client do not wait."""
    big = Request(after_ms=0, api_key=PRODUCE, cost=2_000_000, throttle_ms=500)
    small = replace(big, after_ms=700, cost=10, throttle_ms=0)
    other = replace(small, after_ms=100, connection=2)
    row = closed([big, small, other], {ALICE: {"producer_byte_rate": 100_000.0}})["produce"]
    # 2 MB in 10 s are twice the limit: 10 s of mute, after which the client takes as long as after the logged one: 200 ms.
    assert row["throttled_requests"] == 3
    assert row["delayed_requests"] == 1
    assert row["delayed_bytes"] == 10
    assert row["late_ms"] == 10_000 + 200 - 700


def test_an_unknown_throttle_is_no_time() -> None:
    """What history has for one (-1) is no millisecond that the client would have waited by itself."""
    rows = [
        closed(
            [
                Request(after_ms=0, api_key=PRODUCE, cost=2_000_000, throttle_ms=reported),
                Request(after_ms=700, api_key=PRODUCE, cost=10),
            ],
            {ALICE: {"producer_byte_rate": 100_000.0}},
        )
        for reported in (0, -1)
    ]
    assert rows[0] == rows[1]


def test_throttled_fetch_is_asked_for_again() -> None:
    """A Fetch past the limit is answered empty, given back, and brings its bytes when the mute is over."""
    fetch = Request(after_ms=10, api_key=FETCH, cost=900_000)
    row = closed([fetch, fetch], {ALICE: {"consumer_byte_rate": 100_000.0}})["fetch"]
    assert row["throttled_requests"] >= 1
    assert row["delayed_requests"] == 1
    assert row["delayed_bytes"] == 900_000
    assert row["unsent_requests"] == 0
    assert row["late_ms"] > 5_000


@pytest.mark.parametrize("way", WAYS)
def test_slow_fetch_is_charged_its_time_once(way: str) -> None:
    """A Fetch whose own time is above the request quota passes when that is out of all windows, however often it was repeated."""
    slow = replace(SLOW_FETCH, cost=1_000)
    quick = replace(slow, request_us=100)
    with kernels(way):
        row = closed([slow, quick, quick], {ALICE: {"request_percentage": 0.5}})["request"]
    # 20 percent-seconds are four times what ten windows allow: a second of mute each time, until 11 windows are over.
    assert row["throttled_requests"] == 11
    assert row["unsent_requests"] == 0
    assert 11_000 < row["late_ms"] < 12_000


def test_refused_mutation_is_charged_its_time_once() -> None:
    """A refused mutation that is repeated asks its bucket each time, and charges the time of its threads the first time."""
    quotas = {"controller_mutation_rate": 2.0, "request_percentage": 2.0}
    found = closed([SLOW_CREATE] * 3, {ALICE: quotas})
    assert found["controller_mutation"]["rejected_requests"] == 2
    # When the second one passes after 4 s, two requests have taken 9 of 20 percent-seconds each; its refusal took no more.
    assert found["request"]["throttled_requests"] == 0


def test_fetch_above_all_windows_comes_in_parts() -> None:
    """A Fetch larger than all whole windows allow is cut as brokers cut it, and not stuck for ever."""
    fetch = Request(api_key=FETCH, cost=5_000_000, request_us=1_000)
    row = closed([fetch], {ALICE: {"consumer_byte_rate": 100_000.0}})["fetch"]
    assert row["unsent_requests"] == 0
    # Five parts of 1 MB; each but the first is refused until the one before is out of all windows: 2 x 10 s.
    assert row["throttled_requests"] == 8
    assert row["late_ms"] == 80_004


def test_replay_ends() -> None:
    """What would take longer than the drain is given up, and counted as not sent."""
    fetch = Request(api_key=FETCH, cost=5_000_000)
    short = ReplaySettings(drain_ms=10_000)
    row = closed([fetch, fetch], {ALICE: {"consumer_byte_rate": 1_000.0}}, settings=short)["fetch"]
    assert row["unsent_requests"] == 2
    assert 9_900_000 < row["unsent_bytes"] < 10_000_000


def test_refused_mutation_is_retried() -> None:
    """A refused mutation comes again when the bucket is out of debt, as the Admin client does; it counts each time."""
    create = Request(after_ms=5, api_key=CREATE_TOPICS, cost=30)
    row = closed([create] * 3, {ALICE: {"controller_mutation_rate": 2.0}})["controller_mutation"]
    # a burst of 22: the first overdraws by 8, the others wait until 0 and overdraw by 30 each
    assert row["rejected_requests"] >= 2
    assert row["rejected_mutations"] == 30 * row["rejected_requests"]
    assert row["late_ms"] > 18_000


def test_requests_that_the_log_shows_twice_are_sent_once() -> None:
    """What the log shows as answered empty or refused is left out: its retry is in the log, too."""
    fetch = Request(after_ms=10, api_key=FETCH, cost=1_000)
    empty = replace(fetch, withheld=True, throttle_ms=500, request_us=5)
    create = Request(after_ms=10, api_key=CREATE_TOPICS, cost=1)
    refused = replace(create, withheld=True)
    quotas = {ALICE: {"consumer_byte_rate": 1e9, "controller_mutation_rate": 1e9}}
    found = closed([empty, fetch, refused, create], quotas)
    assert found["fetch"]["unsent_requests"] == 0
    assert found["controller_mutation"]["rejected_requests"] == 0
    assert found["fetch"]["late_ms"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_granted_part_of_a_refused_mutation_is_sent(way: str) -> None:
    """What the log shows as granted of a refused mutation is charged, and its repetition has the rest."""
    part = Request(api_key=CREATE_TOPICS, cost=100, withheld=True, granted=90)
    rest = replace(part, after_ms=20_000, cost=10, withheld=False)
    with kernels(way):
        found = closed([part, rest], {ALICE: {"controller_mutation_rate": 1.0}})
    row = found["controller_mutation"]
    # a burst of 11: 79 of debt, of which 59 are left after 20 s
    assert row["amount"] == 100
    assert (row["rejected_requests"], row["rejected_mutations"]) == (1, 10)
    assert 59_000 <= row["late_ms"] < 59_100


def test_requests_that_charge_no_own_quota_wait_as_well() -> None:
    """A throttle by the request quota holds back whatever comes next on the connection."""
    busy = Request(after_ms=1, api_key=METADATA, request_us=900_000)
    row = closed([busy] * 4, {ALICE: {"request_percentage": 5.0}})["request"]
    assert row["throttled_requests"] >= 3
    assert row["longest_throttle_ms"] == 1_000
    assert row["delayed_bytes"] == 0
    assert row["late_ms"] > 1_900
