"""What a replay in open loop tells: each figure by what it says it is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.kernels.ways import WAYS, kernels
from tests.pipeline.whatif.histories import (
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
from tests.strategies import examples

from quotascope.metrics import DEFAULT, KafkaRelease, QuotaEntity, WindowConfig
from quotascope.pipeline.candidates import Candidate, MutationPolicy
from quotascope.pipeline.whatif import RESULTS, Mode, Settings, predict, replay

ALICE = QuotaEntity("alice")
KEY = ("candidate", "broker", "user", "client_id", "quota_type")


def by_type(made: list[Request], quotas: Any, **more: Any) -> dict[str, dict[str, Any]]:
    """The results of one entity by quota type."""
    found = replay(history(made), [candidate(quotas)], **more)
    return {row["quota_type"]: row for row in found.to_pylist()}


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows in an order of their own."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: [str(row[name]) for name in KEY])


@pytest.mark.parametrize("way", WAYS)
@given(made=st.lists(requests, min_size=1, max_size=40), quotas=quota_sets)
@settings(
    max_examples=examples(50),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_sums_are_those_of_single_requests(
    way: str, made: list[Request], quotas: Any
) -> None:
    """Throttled requests, their time, the longest one and refusals add up from the predictions of single requests."""
    table, chosen = history(made), candidate(quotas)
    with kernels(way):
        single = predict(table, chosen).to_pylist()
        found = replay(table, [chosen]).to_pylist()
    for row in found:
        entity = row["user"], row["client_id"]
        whose = [one for one in single if (one["user"], one["client_id"]) == entity]
        throttles = [
            one["throttle_ms"]
            for one in whose
            if one["throttled_by"] == row["quota_type"]
        ]
        assert row["throttled_requests"] == len(throttles)
        assert row["throttled_ms"] == sum(throttles)
        assert row["longest_throttle_ms"] == max(throttles, default=0)
        assert 0 <= row["muted_ms"] <= row["active_ms"]
        if row["quota_type"] == "controller_mutation":
            assert row["rejected_requests"] == sum(one["rejected"] for one in whose)
    told = {(row["user"], row["client_id"], row["quota_type"]) for row in found}
    throttled = {(one["user"], one["client_id"], one["throttled_by"]) for one in single}
    assert {what for what in throttled if what[2] is not None} <= told


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", Mode)
@given(
    made=st.lists(requests, min_size=1, max_size=30),
    quotas=st.lists(quota_sets, min_size=2, max_size=4),
)
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_candidates_do_not_disturb_each_other(
    mode: Mode, way: str, made: list[Request], quotas: list[Any]
) -> None:
    """Many candidates in one pass, whichever is the strictest, give what each gives alone."""
    table = history(made)
    all_ = [candidate(one, name=str(number)) for number, one in enumerate(quotas)]
    with kernels(way):
        together = replay(table, all_, mode).to_pylist()
        alone = [replay(table, [one], mode).to_pylist() for one in all_]
    for one, rows in zip(all_, alone, strict=True):
        assert [row for row in together if row["candidate"] == one.name] == rows


def test_figures_of_a_burst() -> None:
    """Muted and active time, share, delayed bytes and recovery, each worked out by hand."""
    big = Request(after_ms=100, api_key=PRODUCE, cost=1_500_000)
    small = replace(big, cost=100, after_ms=1_000)
    last = replace(small, after_ms=10_000)
    row = by_type([big, small, last], {ALICE: {"producer_byte_rate": 100_000.0}})[
        "produce"
    ]
    # 1.5 MB over 10 s: 5,000 ms; 1,500,100 B over 10 s a second later: 5,001 ms; then nothing.
    assert row["throttled_requests"] == 2
    assert row["throttled_ms"] == 10_001
    assert row["muted_ms"] == 6_001
    # Active: 2 s from the first request on, muted until 6.001 s, and 1 s from the last one on.
    assert row["active_ms"] == 7_001
    assert row["throttled_share"] == pytest.approx(6_001 / 7_001)
    assert row["longest_throttle_ms"] == 5_001
    assert (row["delayed_requests"], row["delayed_bytes"]) == (1, 100)
    assert row["recovery_ms"] == 11_000
    assert (row["requests"], row["amount"]) == (3, 1_500_200.0)
    assert (row["limit"], row["level"]) == (100_000.0, "user")
    assert (row["late_ms"], row["unsent_requests"]) == (0, 0)


def test_burst_without_an_end() -> None:
    """A burst that nothing follows recovers with its last mute; time muted after the last second does not count."""
    big = Request(api_key=PRODUCE, cost=3_000_000)
    row = by_type([big], {ALICE: {"producer_byte_rate": 100_000.0}})["produce"]
    assert row["recovery_ms"] == row["throttled_ms"] == 20_000
    assert row["muted_ms"] == row["active_ms"] == 1_000
    assert row["throttled_share"] == 1.0


def test_throttled_fetch_delays_its_own_bytes() -> None:
    """A Fetch that would be answered empty counts with its bytes, once, whatever held it back."""
    fetch = Request(after_ms=50, api_key=FETCH, cost=2_000_000)
    row = by_type([fetch, fetch], {ALICE: {"consumer_byte_rate": 100_000.0}})["fetch"]
    assert (row["delayed_requests"], row["delayed_bytes"]) == (2, 4_000_000)


def test_the_longer_throttle_counts() -> None:
    """A request that two quotas throttle belongs to the one that asks for more, on a tie to the request quota."""
    made = [Request(api_key=PRODUCE, cost=3_000_000, request_us=5_000_000)]
    quotas = {"producer_byte_rate": 100_000.0, "request_percentage": 1.0}
    found = by_type(made, {ALICE: quotas})
    assert found["produce"]["throttled_requests"] == 1
    assert found["request"]["throttled_requests"] == 0
    assert found["request"]["amount"] == 500.0


def test_brokers_apart_and_together() -> None:
    """Every broker measures by itself; sums are sums, and the longest is the longest of one."""
    big = Request(api_key=PRODUCE, cost=1_500_000)
    made = [
        big,
        replace(big, broker="2", cost=3_000_000),
        replace(big, broker="3", cost=9),
    ]
    table = history(made)
    chosen = [candidate({ALICE: {"producer_byte_rate": 100_000.0}})]
    (both,) = replay(table, chosen).to_pylist()
    apart = replay(table, chosen, settings=Settings(per_broker=True)).to_pylist()
    assert [row["broker"] for row in apart] == ["1", "2", "3"]
    assert [row["throttled_ms"] for row in apart] == [5_000, 20_000, 0]
    assert both["broker"] is None
    assert both["throttled_ms"] == 25_000
    assert both["longest_throttle_ms"] == 20_000
    assert both["active_ms"] == sum(row["active_ms"] for row in apart)


def test_clients_of_a_rule_share_its_limit() -> None:
    """A rule for a user is one sensor for all its clients, one for a client id one for all its users."""
    half = Request(api_key=PRODUCE, cost=600_000)
    made = [half, replace(half, client_id="b"), replace(half, user="bob")]
    by_user = candidate({ALICE: {"producer_byte_rate": 100_000.0}}, name="user")
    by_client = candidate(
        {QuotaEntity(None, DEFAULT): {"producer_byte_rate": 100_000.0}}, name="client"
    )
    found = replay(history(made), [by_user, by_client]).to_pylist()
    throttled = {
        (row["candidate"], row["user"], row["client_id"]): row["throttled_ms"]
        for row in found
    }
    assert throttled == {
        ("user", "alice", "app"): 0,
        ("user", "alice", "b"): 2_000,
        ("client", "alice", "app"): 0,
        ("client", "alice", "b"): 0,
        ("client", "bob", "app"): 2_000,
    }


def test_windows_are_those_of_the_candidate() -> None:
    """A broker with other windows measures otherwise."""
    made = [Request(api_key=PRODUCE, cost=1_500_000)]
    quotas = {ALICE: {"producer_byte_rate": 100_000.0}}
    wide = candidate(quotas, windows=WindowConfig(samples=21, window_seconds=1))
    (row,) = replay(history(made), [wide]).to_pylist()
    assert row["throttled_ms"] == 0


def test_policies_of_mutations() -> None:
    """The token bucket and the draft's rate are compared in one pass."""
    create = Request(after_ms=1_000, api_key=CREATE_TOPICS, cost=40)
    quotas = {ALICE: {"controller_mutation_rate": 2.0}}
    both = [
        candidate(quotas, name=policy.value, mutation_policy=policy)
        for policy in MutationPolicy
    ]
    found = replay(history([create] * 4), both).to_pylist()
    refused = {row["candidate"]: row["rejected_mutations"] for row in found}
    assert refused == {"token-bucket": 120, "burst-spreading": 120}


@pytest.mark.parametrize("way", WAYS)
def test_partly_granted_mutation_is_refused_for_the_rest(way: str) -> None:
    """Of a mutation that the log shows as granted in part, that part counts; the rest is refused, or all where the candidate grants no part."""
    part = Request(api_key=CREATE_TOPICS, cost=100, withheld=True, granted=90)
    rest = replace(part, after_ms=20_000, cost=10, withheld=False)
    with kernels(way):
        alone, after = (
            by_type(made, {ALICE: {"controller_mutation_rate": 5.0}})
            for made in ([part, rest], [replace(rest, cost=60), part])
        )
    row = alone["controller_mutation"]
    assert (row["requests"], row["amount"]) == (2, 100.0)
    assert (row["rejected_requests"], row["rejected_mutations"]) == (1, 10)
    row = after["controller_mutation"]
    assert (row["requests"], row["amount"]) == (2, 150.0)
    assert (row["rejected_requests"], row["rejected_mutations"]) == (1, 100)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", Mode)
def test_throttles_beyond_a_month(way: str, mode: Mode) -> None:
    """A throttle above 24.8 days stops there, as in Kafka since 4.4, and wraps around to none before."""
    made = [Request(api_key=PRODUCE, cost=3_000_000)]
    quotas = {ALICE: {"producer_byte_rate": 1.0}}
    older = Settings(release=KafkaRelease(4, 3))
    with kernels(way):
        newest = by_type(made, quotas, mode=mode)["produce"]
        wrapped = by_type(made, quotas, mode=mode, settings=older)["produce"]
    assert newest["throttled_ms"] == newest["longest_throttle_ms"] == 2_147_483_647
    assert wrapped["throttled_requests"] == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", Mode)
def test_request_throttles_of_long_windows(way: str, mode: Mode) -> None:
    """A request throttle is one window at most, and a window may be longer than 24.8 days."""
    made = [Request(user="alice", request_us=3_000_000_000)] * 2
    quotas = {ALICE: {"request_percentage": 0.001}}
    windows = WindowConfig(samples=2, window_seconds=3_000_000)
    found = {}
    with kernels(way):
        for minor in (3, 4):
            settings = Settings(release=KafkaRelease(4, minor))
            (row,) = replay(
                history(made), [candidate(quotas, windows=windows)], mode, settings
            ).to_pylist()
            found[minor] = row["longest_throttle_ms"]
    assert found == {3: 0, 4: 2_147_483_647}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("release", [KafkaRelease(4, 3), KafkaRelease(4, 4)], ids=str)
def test_mutation_throttles_wrap_in_all_releases(
    way: str, release: KafkaRelease
) -> None:
    """The controller's throttle is cut to 32 bits, whatever the release: a debt of 3,000,000 partitions at 1 a second counts as none."""
    create = Request(api_key=CREATE_TOPICS, api_version=5, cost=3_000_000)
    quotas = {ALICE: {"controller_mutation_rate": 1.0}}
    with kernels(way):
        found = by_type([create], quotas, settings=Settings(release=release))
    assert found["controller_mutation"]["throttled_requests"] == 0


def test_only_limited_quotas_are_told() -> None:
    """There is a row where a candidate limits something that the entity charged, and no other."""
    made = [Request(api_key=PRODUCE, cost=1), Request(user="bob", request_us=5)]
    quotas = {ALICE: {"producer_byte_rate": 1.0, "consumer_byte_rate": 1.0}}
    assert list(by_type(made, quotas)) == ["produce"]
    assert len(replay(history(made), [candidate({})])) == 0


@pytest.mark.parametrize("mode", Mode)
def test_nothing_to_replay(mode: Mode) -> None:
    """No requests, or no candidates, make no rows, of the right columns."""
    quotas = [candidate({ALICE: {"producer_byte_rate": 1.0}})]
    assert replay(history([]), quotas, mode) == RESULTS.empty_table()
    assert replay([], quotas, mode) == RESULTS.empty_table()
    assert replay(history([Request()]), [], mode) == RESULTS.empty_table()


def crowd(users: int, rows: int) -> pa.Table:
    """Requests of many users, sorted as a history is."""
    random = np.random.default_rng(7)
    whose = random.integers(users, size=rows)
    made = [
        Request(
            after_ms=13,
            user=f"user {one}",
            client_id=f"client {one % 3}",
            api_key=PRODUCE if one % 2 else METADATA,
            cost=int(random.integers(200_000)),
            request_us=int(random.integers(50_000)),
        )
        for one in whose
    ]
    return history(made).sort_by([("user", "ascending"), ("timestamp", "ascending")])


CROWD = [
    candidate(
        {
            QuotaEntity(DEFAULT): {
                "producer_byte_rate": 20_000.0,
                "request_percentage": 0.3,
            }
        }
    )
]


@pytest.mark.parametrize("mode", Mode)
def test_batches_are_carried_over(mode: Mode) -> None:
    """Batches that cut users give what one table gives, in pieces of any size; progress is told after each."""
    table = crowd(users=9, rows=600)
    whole = replay(table, CROWD, mode)
    told: list[tuple[int, int]] = []
    few = Settings(rows_at_once=100)
    batches = table.to_batches(max_chunksize=7)
    parts = replay(batches, CROWD, mode, few, lambda *done: told.append(done))
    assert sorted_rows(parts) == sorted_rows(whole)
    assert len(told) > 3
    assert told[-1] == (len(table), 0)
    pieces = replay(table, CROWD, mode, few, lambda *done: told.append(done))
    assert told[-1] == (len(table), len(table))
    assert sorted_rows(pieces) == sorted_rows(whole)
    told.clear()
    narrow = Settings(cells_at_once=2 * len(CROWD))
    pairs = replay(table, CROWD, mode, narrow, lambda *done: told.append(done))
    assert len(told) >= 5, "two clients at once"
    assert sorted_rows(pairs) == sorted_rows(whole)
    assert any(whole.column("throttled_requests").to_pylist())


def test_batches_of_users_that_share_a_client_id() -> None:
    """With a rule for client ids alone users share a limit, wherever in the stream they are."""
    table = crowd(users=9, rows=300)
    quotas = {QuotaEntity(None, DEFAULT): {"producer_byte_rate": 50_000.0}}
    chosen: list[Candidate] = [candidate(quotas)]
    parts = replay(table.to_batches(max_chunksize=7), chosen)
    assert sorted_rows(parts) == sorted_rows(replay(table, chosen))
