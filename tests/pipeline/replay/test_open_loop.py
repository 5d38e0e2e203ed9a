"""A replay in open loop equals the engine, and each figure is what its column says."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.builders.requests import CREATE_TOPICS, FETCH, METADATA, PRODUCE, Request
from tests.pipeline.history.requests import ORDER
from tests.pipeline.replay.engine import Cluster, size_of
from tests.pipeline.replay.histories import (
    CROWD,
    KEY,
    candidate,
    crowd,
    history,
    mixes,
    quota_sets,
    requests,
    sorted_rows,
)
from tests.pipeline.replay.ways import WAYS, kernels
from tests.strategies import examples

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pipeline.errors import PipelineError
from quotascope.pipeline.history.schema import HISTORY, PLACE
from quotascope.pipeline.replay import RESULTS, Mode, ReplaySettings, replay
from quotascope.quotas.candidates import Candidate, MutationPolicy

ALICE = QuotaEntity("alice")
HALF = Request(api_key=PRODUCE, cost=600_000)
SUMS = (
    "requests",
    "throttled_requests",
    "throttled_ms",
    "muted_ms",
    "delayed_requests",
    "delayed_bytes",
    "refused_requests",
    "refused_mutations",
)
"""Columns in which the figures of brokers are added up."""


def by_type(requests_made: list[Request], quotas: Any, **options: Any) -> dict[str, dict[str, Any]]:
    results = replay(history(requests_made), [candidate(quotas)], **options)
    return {row["quota_type"]: row for row in results.to_pylist()}


@dataclass
class Expected:
    """Return the decisions of the engine's brokers on requests as logged, by broker, user, client id and quota type."""

    throttles: dict[tuple[str, ...], list[int]] = field(default_factory=lambda: defaultdict(list))
    refused: Counter[tuple[str, ...]] = field(default_factory=Counter)


def by_engine(table: pa.Table, chosen: Candidate, mix: ReplaySettings) -> Expected:
    cluster, results, rows = Cluster(chosen, mix), Expected(), table.to_pylist()
    decisions = [(row["timestamp"], 0, number) for number, row in enumerate(rows)]
    network = [(row["completed"], 1, number) for number, row in enumerate(rows)]
    for at_ms, kind, number in sorted(decisions + network):
        row = rows[number]
        if kind:
            cluster.network(row, at_ms)
            continue
        wait_ms = at_ms - (row["mutation_timestamp"] or at_ms)
        decision, refused = cluster.decide(row, size_of(row), at_ms, wait_ms=wait_ms)
        whose = row["broker"], row["user"], row["client_id"]
        if decision.throttled_by is not None:
            results.throttles[*whose, decision.throttled_by.label].append(max(0, decision.response_ms))
        results.refused[*whose, "controller_mutation"] += refused
    return results


@pytest.mark.parametrize("way", WAYS)
@given(made=st.lists(requests, min_size=1, max_size=40), quotas=quota_sets, wait_ms=st.sampled_from((0, 20)), mix=mixes)
@example(  # a request that two quotas throttle belongs to the one that asks for more
    made=[Request(api_key=PRODUCE, cost=3_000_000, request_us=5_000_000)],
    quotas={ALICE: {"producer_byte_rate": 100_000.0, "request_percentage": 1.0}},
    wait_ms=0,
    mix=ReplaySettings(per_broker=True),
)
@example(  # a rule for a user is one sensor for all its clients, one for a client id one for all its users
    made=[HALF, replace(HALF, client_id="b"), replace(HALF, user="bob")],
    quotas={ALICE: {"producer_byte_rate": 100_000.0}, QuotaEntity(None, DEFAULT): {"producer_byte_rate": 100_000.0}},
    wait_ms=0,
    mix=ReplaySettings(per_broker=True),
)
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equals_the_engine(way: str, made: list[Request], quotas: Any, wait_ms: int, mix: ReplaySettings) -> None:
    """
    Throttles and refusals of every type are those of real quota managers.

    Rules have all levels, sensors are shared, and each broker is of a release of its own.
    """
    table = history([replace(request, wait_ms=wait_ms) for request in made])
    chosen = candidate(quotas)
    expected = by_engine(table, chosen, mix)
    with kernels(way):
        apart = replay(table, [chosen], settings=mix)
        whole = replay(table, [chosen], settings=replace(mix, per_broker=False)).to_pylist()
    rows = apart.to_pylist()
    for row in rows:
        what = tuple(row[name] for name in KEY[1:])
        throttles = expected.throttles.pop(what, [])
        assert row["throttled_requests"] == len(throttles)
        assert row["throttled_ms"] == sum(throttles)
        assert row["longest_throttle_ms"] == max(throttles, default=0)
        assert row["refused_requests"] == expected.refused[what]
        assert 0 <= row["muted_ms"] <= row["active_ms"]
    assert not expected.throttles
    for both in whole:
        what = tuple(both[name] for name in KEY[2:])
        mine = [row for row in rows if tuple(row[name] for name in KEY[2:]) == what]
        for name in SUMS:
            assert both[name] == sum(row[name] for row in mine)
        for name in ("longest_throttle_ms", "recovery_ms"):
            assert both[name] == max(row[name] for row in mine)
        for name in ("active_ms", "amount"):  # of brokers without a row of theirs, too
            assert both[name] >= sum(row[name] for row in mine) - 1e-6


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", Mode)
@given(made=st.lists(requests, min_size=1, max_size=30), quotas=st.lists(quota_sets, min_size=2, max_size=4))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_candidates_do_not_disturb_each_other(mode: Mode, way: str, made: list[Request], quotas: list[Any]) -> None:
    """Many candidates in one pass, whichever is the strictest, give the same results as each alone."""
    table = history(made)
    all_ = [candidate(quota_set, name=str(number)) for number, quota_set in enumerate(quotas)]
    with kernels(way):
        together = replay(table, all_, mode).to_pylist()
        alone = [replay(table, [quota_set], mode).to_pylist() for quota_set in all_]
    for quota_set, rows in zip(all_, alone, strict=True):
        assert [row for row in together if row["candidate"] == quota_set.name] == rows


def test_figures_of_a_burst() -> None:
    """Muted and active time, share, delayed bytes and recovery of a burst are as worked out by hand."""
    big = Request(after_ms=100, api_key=PRODUCE, cost=1_500_000)
    small = replace(big, cost=100, after_ms=1_000)
    final = replace(small, after_ms=10_000)
    row = by_type([big, small, final], {ALICE: {"producer_byte_rate": 100_000.0}})["produce"]
    # 1.5 MB over 10 s: 5,000 ms; 1,500,100 B over 10 s a second later: 5,001 ms; then nothing.
    assert (row["throttled_requests"], row["throttled_ms"], row["longest_throttle_ms"]) == (2, 10_001, 5_001)
    # Active: 2 s from the first request on, muted until 6.001 s, and 1 s from the last one on, which comes after the
    # recovery.
    assert (row["muted_ms"], row["active_ms"], row["recovery_ms"]) == (6_001, 7_001, 6_001)
    assert row["throttled_share"] == pytest.approx(6_001 / 7_001)
    assert (row["delayed_requests"], row["delayed_bytes"]) == (1, 100)
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
    """A Fetch that would be answered empty counts its bytes once, whichever quotas delay it."""
    fetch = Request(after_ms=50, api_key=FETCH, cost=2_000_000)
    row = by_type([fetch, fetch], {ALICE: {"consumer_byte_rate": 100_000.0}})["fetch"]
    assert (row["delayed_requests"], row["delayed_bytes"]) == (2, 4_000_000)


def test_recovery_is_that_of_the_longest_burst() -> None:
    """A burst ends with an unthrottled request of the same quota, not with one of another quota. The longest counts."""
    big = Request(after_ms=100_000, api_key=PRODUCE, cost=1_500_000)
    end = replace(big, after_ms=60_000, cost=1)
    fetch_between = Request(after_ms=1_000, api_key=FETCH, cost=1, request_us=1)
    requests_made = [big, replace(big, after_ms=2_000), fetch_between, end, big, replace(end, after_ms=20_000)]
    quotas = {"producer_byte_rate": 1e5, "consumer_byte_rate": 1e5, "request_percentage": 1e5}
    recovered = {kind: row["recovery_ms"] for kind, row in by_type(requests_made, {ALICE: quotas}).items()}
    # 3 MB over 10 s: 20 s after the second request, whenever the next one comes.
    assert recovered == {"produce": 22_000, "fetch": 0, "request": 0}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("costs", "quotas", "recovery_ms"),
    [
        (({"cost": 1_500_000}, {"cost": 1}), {"producer_byte_rate": 1e5}, 5_000),
        (({"cost": 1_500_000}, {"cost": 1_400_000}), {"producer_byte_rate": 1e5}, 5_000),
        (({"request_us": 4_000_000}, {"request_us": 1}), {"request_percentage": 10.0}, 11_000),
        (({"request_us": 4_000_000}, {"request_us": 3_000_000}), {"request_percentage": 10.0}, 11_000),
    ]
)  # fmt: skip
def test_recovery_needs_no_request(
    way: str, mode: Mode, costs: tuple[dict[str, Any], ...], quotas: dict[str, float], recovery_ms: int
) -> None:
    """
    A burst of a night is over when windows are, not in the next night, which may begin with a throttle.

    A request throttle ends before them.
    """
    key = PRODUCE if "producer_byte_rate" in quotas else METADATA
    requests_made = [Request(after_ms=24 * 3_600_000, api_key=key, **cost) for cost in costs]
    with kernels(way):
        (row,) = by_type(requests_made, {ALICE: quotas}, mode=mode).values()
    assert row["recovery_ms"] == recovery_ms


def test_request_ends_the_bursts_of_both_its_quotas() -> None:
    """A request that costs bytes and thread time ends the burst of either quota."""
    slow = Request(request_us=5_000_000)
    big = Request(after_ms=1_000, api_key=FETCH, cost=9_000_000)
    both = replace(big, after_ms=60_000, cost=1, request_us=1)
    results = by_type([slow, big, both], {ALICE: {"request_percentage": 10.0, "consumer_byte_rate": 1e5}})
    assert {kind: row["recovery_ms"] for kind, row in results.items()} == {"fetch": 60_000, "request": 11_000}


def test_fetch_answered_empty_has_the_size_of_the_next() -> None:
    """A Fetch whose size the log lost has the size of its connection's next one, which is given back."""
    fetch = Request(after_ms=2_000, api_key=FETCH, request_us=10)
    empty = replace(fetch, withheld=True, throttle_ms=7)
    requests_made = [fetch, empty, replace(fetch, cost=1_000, connection=2), replace(fetch, cost=4_000_000), empty]
    row = by_type(requests_made, {ALICE: {"consumer_byte_rate": 100_000.0}})["fetch"]
    # 4 MB over 10 s: what was given back is in no later measurement, and without a next Fetch nothing is known.
    assert (row["requests"], row["requests_of_unknown_size"], row["throttled_requests"]) == (5, 1, 3)
    assert row["throttled_ms"] == 30_000 + 30_010 + 30_010


@pytest.mark.parametrize("mode", Mode)
def test_what_was_throttled_while_logged_is_held_back(mode: Mode) -> None:
    """
    Requests that were throttled or refused in the log count as held back under each quota that they charge.

    An unknown throttle time is none.
    """
    fetch = Request(api_key=FETCH, cost=1_000, request_us=10)
    requests_made = [
        fetch,
        replace(fetch, throttle_ms=7),
        replace(fetch, throttle_ms=-1),
        Request(api_key=CREATE_TOPICS, cost=10),
        Request(api_key=CREATE_TOPICS, cost=10, withheld=True),
    ]
    limits = {"consumer_byte_rate": 1e9, "request_percentage": 1e6, "controller_mutation_rate": 1e6}
    results = by_type(requests_made, {ALICE: limits}, mode=mode)
    assert {kind: row["held_back_requests"] for kind, row in results.items()} == {
        "fetch": 1,
        "request": 1,
        "controller_mutation": 1,
    }


def test_refused_mutation_of_the_log_is_not_charged() -> None:
    """A mutation that the log shows as refused is checked only: its retry is in the log, too."""
    create = Request(api_key=CREATE_TOPICS, cost=100)
    requests_made = [create, *[replace(create, withheld=True)] * 2, create]
    low, high = (
        by_type(requests_made, {ALICE: {"controller_mutation_rate": rate}})["controller_mutation"]
        for rate in (1.0, 10.0)
    )
    assert (low["refused_requests"], low["throttled_ms"]) == (3, 3 * 89_000)
    assert high["refused_requests"] == 0


@pytest.mark.parametrize("mode", Mode)
def test_mutation_that_fails_never_comes_to_the_quota(mode: Mode) -> None:
    """Creating a topic that exists is neither throttled nor refused, however deep its bucket is in debt."""
    create = Request(api_key=CREATE_TOPICS, cost=100)
    requests_made = [create, *[replace(create, cost=0)] * 2]
    row = by_type(requests_made, {ALICE: {"controller_mutation_rate": 1.0}}, mode=mode)["controller_mutation"]
    assert (row["requests"], row["throttled_requests"], row["refused_requests"]) == (1, 0, 0)


@pytest.mark.parametrize("mode", Mode)
def test_mutation_of_unknown_size_is_counted_as_such(mode: Mode) -> None:
    """A mutation of unknown size is of no known partition, and waits for the debt of others."""
    of_known_size, unknown = history([Request(api_key=CREATE_TOPICS, cost=100)] * 2).to_pylist()
    table = pa.Table.from_pylist([of_known_size, unknown | {"mutations": None, "mutations_charged": None}], HISTORY)
    (row,) = replay(table, [candidate({ALICE: {"controller_mutation_rate": 1.0}})], mode).to_pylist()
    assert (row["requests"], row["requests_of_unknown_size"], row["amount"]) == (2, 1, 100)
    assert (row["refused_requests"], row["longest_throttle_ms"]) == (1, 89_000)


@pytest.mark.parametrize("mode", Mode)
def test_rows_may_come_in_any_order(mode: Mode) -> None:
    """Mutations are measured in the order of time and of their places in the log, even after an unstable sort."""
    table = crowd(users=3, rows=900)
    times = pc.multiply(pc.divide(table["timestamp"], 2_000), 2_000)
    files = pa.array(["b.log"] * 450 + ["c.log"] * 450)
    for name, values in (("timestamp", times), ("file", files)):
        table = table.set_column(table.column_names.index(name), HISTORY.field(name), values)
    whole = sorted_rows(replay(table, CROWD, mode))
    random = np.random.default_rng(5)
    mixed = table.take(random.permutation(len(table)))
    ordered = mixed.sort_by([(name, "ascending") for name in ORDER])
    for rows in (mixed, ordered):
        assert sorted_rows(replay(rows, CROWD, mode)) == whole
    assert sorted_rows(replay(mixed.drop_columns([*PLACE]), CROWD, mode)) != whole


def test_missing_columns() -> None:
    """A history of another making is refused by the names of its missing columns."""
    table = history([Request()]).drop_columns(["refused", "connection"])
    with pytest.raises(PipelineError, match="lacks the columns connection, refused"):
        replay(table, CROWD)


def test_policies_of_mutations() -> None:
    """The token bucket and the draft's rate are compared in one pass."""
    create = Request(after_ms=10_000, api_key=CREATE_TOPICS, cost=40)
    quotas = {ALICE: {"controller_mutation_rate": 2.0}}
    both = [candidate(quotas, name=policy.value, mutation_policy=policy) for policy in MutationPolicy]
    results = replay(history([create] * 4), both).to_pylist()
    refused = {row["candidate"]: row["refused_mutations"] for row in results}
    assert refused == {"token-bucket": 40, "burst-spreading": 0}


@pytest.mark.parametrize("way", WAYS)
def test_partly_granted_mutation_is_refused_for_the_rest(way: str) -> None:
    """
    A mutation counts in the part that the log shows as granted, and its rest is refused.

    All of it is refused if the candidate grants no part.
    """
    part = Request(api_key=CREATE_TOPICS, cost=100, withheld=True, granted=90)
    repetition = replace(part, after_ms=20_000, cost=10, withheld=False)
    with kernels(way):
        alone, after_grant = (
            by_type(requests_made, {ALICE: {"controller_mutation_rate": 5.0}})
            for requests_made in ([part, repetition], [replace(repetition, cost=60), part])
        )
    names = ("requests", "amount", "refused_requests", "refused_mutations")
    alone_figures, second = (
        [results["controller_mutation"][name] for name in names] for results in (alone, after_grant)
    )
    assert (alone_figures, second) == ([2, 100.0, 1, 10], [2, 150.0, 1, 100])


MONTHS = WindowConfig(samples=2, window_seconds=3_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("request_", "quotas", "windows", "newest_ms"),
    [
        (Request(api_key=PRODUCE, cost=3_000_000), {"producer_byte_rate": 1.0}, WindowConfig(), 2_147_483_647),
        # a throttle of thread time is one window at most
        (Request(request_us=3_000_000_000), {"request_percentage": 0.001}, MONTHS, 2_147_483_647),
        # the controller cuts its throttle to 32 bits, whatever the release
        (
            Request(api_key=CREATE_TOPICS, api_version=5, cost=3_000_000),
            {"controller_mutation_rate": 1.0},
            WindowConfig(),
            0,
        ),
    ],
    ids=["bytes", "time", "mutations"],
)
def test_throttles_beyond_a_month(
    way: str, mode: Mode, request_: Request, quotas: dict[str, float], windows: WindowConfig, newest_ms: int
) -> None:
    """A throttle above 24.8 days stops there, as in Kafka since 4.4, and wraps around to none before."""
    tried = [candidate({ALICE: quotas}, windows=windows)]
    with kernels(way):
        results = [
            replay(history([request_]), tried, mode, ReplaySettings(release=KafkaRelease(4, minor))).to_pylist()
            for minor in (3, 4)
        ]
    assert [(row["longest_throttle_ms"], row["throttled_requests"] > 0) for (row,) in results] == [
        (0, False),
        (newest_ms, newest_ms > 0),
    ]


def test_only_limited_quotas_are_reported() -> None:
    """A result has a row only for a quota that a candidate limits and that the entity charged."""
    requests_made = [Request(api_key=PRODUCE, cost=1), Request(user="bob", request_us=5)]
    quotas = {ALICE: {"producer_byte_rate": 1.0, "consumer_byte_rate": 1.0}}
    assert list(by_type(requests_made, quotas)) == ["produce"]
    assert len(replay(history(requests_made), [candidate({})])) == 0


@pytest.mark.parametrize("mode", Mode)
def test_nothing_to_replay(mode: Mode) -> None:
    """No requests, or no candidates, make no rows, of the right columns."""
    quotas = [candidate({ALICE: {"producer_byte_rate": 1.0}})]
    assert replay(history([]), quotas, mode) == RESULTS.empty_table()
    assert replay(history([Request()]), [], mode) == RESULTS.empty_table()


@pytest.mark.parametrize("mode", Mode)
def test_pieces_give_what_the_whole_gives(mode: Mode) -> None:
    """Users are replayed some at a time; progress is reported after each piece."""
    table = crowd(users=9, rows=600)
    whole = replay(table, CROWD, mode)
    reported: list[tuple[int, int]] = []
    few = ReplaySettings(rows_at_once=100)
    pieces = replay(table, CROWD, mode, few, lambda *done: reported.append(done))
    assert len(reported) > 3
    assert reported[-1] == (len(table), len(table))
    assert sorted_rows(pieces) == sorted_rows(whole)
    reported.clear()
    narrow = ReplaySettings(cells_at_once=2 * len(CROWD))
    pairs = replay(table, CROWD, mode, narrow, lambda *done: reported.append(done))
    assert len(reported) >= 5, "two clients at once"
    assert sorted_rows(pairs) == sorted_rows(whole)
    assert any(whole.column("throttled_requests").to_pylist())
