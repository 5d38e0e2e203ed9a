from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.recommend.rows import HOUR, MONDAY, history, mutated, produced, request

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pipeline.recommend.need import Need, Seasons, lowest, needs
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, RuleShape, limit_of, rounded_up, steps_of
from quotascope.pipeline.recommend.sensors import debt_sensor
from quotascope.pipeline.releases import Followed
from quotascope.pipeline.replay import replay
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate


def needed(rows: pa.Table, **policy: object) -> dict[QuotaType, Need]:
    usual = {"share": 0.1, "by_hour": False}
    chosen = Policy(**{**usual, **policy})  # type: ignore[arg-type]
    return {need.kind: need for need in needs(rows, chosen, ClusterWindows())}


def share_by_the_engine(sent: Sequence[tuple[int, int]], limit: float) -> float:
    """Return the share of time that the engine throttles when clients continue as if it did not."""
    manager = ClientQuotaManager(Registry(), QuotaType.PRODUCE, MONDAY)
    manager.update_quota(QuotaEntity("alice"), limit)
    throttles = [
        manager.maybe_record_and_get_throttle_time(Principal("alice"), "app1", size, MONDAY + offset_ms)
        for offset_ms, size in sent
    ]
    return float(seasons(*(offset_ms for offset_ms, _ in sent)).shares(np.array(throttles, np.int64))[0])


@given(
    sent=st.lists(
        st.tuples(st.integers(0, 60_000), st.integers(1, 100_000)), min_size=1, max_size=40
    ).map(sorted),
    share=st.sampled_from([0.0, 0.01, 0.3])
)  # fmt: skip
def test_limit_is_the_lowest_by_the_engine_itself(sent: list[tuple[int, int]], share: float) -> None:
    """The engine keeps the share with the limit, and not with one byte/s less."""
    rows = history(produced(offset_ms, size) for offset_ms, size in sent)
    need = needed(rows, share=share)[QuotaType.PRODUCE]
    assert share_by_the_engine(sent, need.steps) <= share
    if need.steps > 1:
        assert share_by_the_engine(sent, need.steps - 1) > share


@pytest.mark.parametrize("windows", [WindowConfig(), WindowConfig(samples=2, window_seconds=60)])
def test_a_replay_confirms_the_share(windows: WindowConfig) -> None:
    """A limit keeps the share of active time for any length of windows, and one byte/s less does not."""
    rows = history(produced(offset_ms, 60_000 + offset_ms % 7_000) for offset_ms in range(0, 600_000, 3_500))
    (need,) = needs(rows, Policy(share=0.1, by_hour=False), ClusterWindows(client=windows))
    limits = [QuotaSet({need.entity: {need.kind.quota_key: float(need.steps - less)}}) for less in (0, 1)]
    tried = [Candidate(name=f"{less}", quotas=quotas, windows=windows) for less, quotas in enumerate(limits)]
    enough, less = replay(rows, tried)["throttled_share"].to_numpy()
    assert enough <= 0.1 < less


def test_each_broker_counts_by_itself() -> None:
    """An entity has a need for each of its brokers."""
    rows = history([produced(0, 10_000), produced(0, 90_000, broker="2")])
    need = {need.broker: need.steps for need in needs(rows, Policy(share=0), ClusterWindows())}
    assert need == {"1": 1_000, "2": 9_000}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (RuleShape.USER, {QuotaEntity("alice"): 3_000, QuotaEntity("bob"): 4_000}),
        (RuleShape.CLIENT, {QuotaEntity(None, "app1"): 5_000, QuotaEntity(None, "app2"): 2_000}),
        (RuleShape.PAIR, {
            QuotaEntity("alice", "app1"): 1_000,
            QuotaEntity("alice", "app2"): 2_000,
            QuotaEntity("bob", "app1"): 4_000,
        }),
    ]
)  # fmt: skip
def test_shape_names_the_entities(shape: RuleShape, expected: dict[QuotaEntity, int]) -> None:
    """An entity is all clients of a user, a client-id of all users, or each pair; rows may come in any order."""
    rows = history([produced(0, 40_000, user="bob"), produced(0, 20_000, client_id="app2"), produced(0, 10_000)])
    chosen = Policy(share=0, shape=shape)
    assert {need.entity: need.steps for need in needs(rows, chosen, ClusterWindows())} == expected


def test_what_needs_nothing() -> None:
    """A log without a request needs nothing; and Kafka stores no quota for an empty client-id."""
    assert list(needs(history([]), Policy(), ClusterWindows())) == []
    rows = history([produced(0, 10_000, client_id="")])
    assert list(needs(rows, Policy(shape=RuleShape.PAIR), ClusterWindows())) == []


def test_nothing_is_known_of_fetches_that_were_never_answered() -> None:
    """A consumer that was throttled to the end has an unknown need, and not the lowest limit."""
    empty = [request(offset_ms, api_key=1, thread_time_ms=0.5, throttle_ms=900) for offset_ms in (0, 1_000)]
    assert set(needed(history(empty))) == {QuotaType.REQUEST}
    answered = request(2_000, api_key=1, thread_time_ms=0.5, fetch_bytes=90_000)
    assert needed(history([*empty, answered]), share=0.0)[QuotaType.FETCH].steps == 9_000


def test_nightly_peak_is_not_lost_in_a_quiet_week() -> None:
    """An hour that would be throttled throughout raises the limit, however short it is, and is named."""
    quiet = [produced(offset_ms, 1_000) for offset_ms in range(0, 100 * HOUR, 60_000)]
    night = [produced(27 * HOUR + offset_ms, 100_000) for offset_ms in range(0, 300_000, 1_000)]
    rows = history(sorted(quiet + night, key=lambda row: row["timestamp"]))
    hourly = needed(rows, by_hour=True)[QuotaType.PRODUCE]
    together = needed(rows, by_hour=False)[QuotaType.PRODUCE]
    assert hourly.hour == 27  # Tue 03h
    assert hourly.steps > 90_000 > together.steps
    assert together.hour is None


def test_hours_are_those_of_the_zone() -> None:
    """Monday midnight in Greenwich is Sunday evening in New York."""
    rows = history([produced(0, 50_000), produced(500, 50_000)])
    zones = {zone: needed(rows, share=0.0, by_hour=True, zone=zone) for zone in (UTC, ZoneInfo("America/New_York"))}
    assert [need[QuotaType.PRODUCE].hour for need in zones.values()] == [0, 163]


def test_request_time_is_percent_of_a_thread() -> None:
    """
    The limit for request time covers the handler's and the network's thread, whatever the API.

    No throttle is longer than a window.
    """
    rows = history(
        request(offset_ms, api_key=12, thread_time_ms=10.0, network_time_ms=1.0) for offset_ms in range(0, 20_000, 100)
    )
    need = needed(rows, share=0.0)[QuotaType.REQUEST]
    assert limit_of(QuotaType.REQUEST, need.steps) == pytest.approx(11.0, abs=0.6)
    assert need.requests == 200


def test_mutations_meet_on_the_controller() -> None:
    """
    Mutations of all brokers share a bucket, and a burst needs what it leaves in debt when the next one comes.

    One that fails before the quota needs nothing, one of an unknown size an unknown limit. Without a time of the
    charge, that of the decision counts.
    """
    small = [
        mutated(offset_ms, size, user=user)
        for offset_ms, size in ((900, 0), (3_000, None))
        for user in ("alice", "bob")
    ]
    rows = history([mutated(0, 22, broker="1", mutation_timestamp=None), mutated(1_000, 1, broker="2"), *small])
    (need,) = (
        need for need in needs(rows, Policy(share=0), ClusterWindows()) if need.kind is QuotaType.CONTROLLER_MUTATION
    )
    assert (need.broker, need.requests, need.unsized) == ("controller", 3, 1)
    assert limit_of(need.kind, need.steps) == 1.84  # 22 - 1.84 < 11 * 1.84


@pytest.mark.parametrize(
    ("followed", "enforced"),
    [
        (Followed(release=KafkaRelease(3, 4)), False),
        (Followed(release=KafkaRelease(3, 4, zookeeper=True)), True),
        (Followed(release=KafkaRelease(3, 5)), True),
        (Followed(release=KafkaRelease(3, 4), by_broker={"2": KafkaRelease(3, 5)}), True),
    ],
)
def test_no_limit_of_mutations_where_no_release_enforces_one(followed: Followed, *, enforced: bool) -> None:
    """No limit of mutations is recommended for KRaft 3.3 and 3.4, which do not enforce it, as the note says."""
    rows = history([mutated(0, 22), produced(5, 100)])
    need = {need.kind for need in needs(rows, Policy(share=0), ClusterWindows(followed=followed))}
    assert (QuotaType.CONTROLLER_MUTATION in need, QuotaType.PRODUCE in need) == (enforced, True)
    assert enforced or followed.by_broker or "does not enforce them" in followed.note


def test_old_clients_need_room_for_the_burst_itself() -> None:
    """Old clients, which are charged before the check, need a limit that covers the whole burst."""
    rows = history([mutated(0, 22, api_version=5)])
    assert needed(rows, share=0.0)[QuotaType.CONTROLLER_MUTATION].steps == 200
    new = history([mutated(0, 22)])
    assert needed(new, share=0.0)[QuotaType.CONTROLLER_MUTATION].steps == 1


def test_kinds_that_are_not_wanted_are_left_out() -> None:
    """Limits are looked for of the wanted quota types only."""
    rows = history([produced(0, 10, thread_time_ms=1.0), mutated(5, 1)])
    assert set(needed(rows, kinds=[QuotaType.PRODUCE])) == {QuotaType.PRODUCE}
    assert len(needed(rows)) == 3


def test_debt_is_rounded_up() -> None:
    """The search must not take a throttle for none: a debt of 1/3 s is 334 ms, of none 0."""
    times, permissive = np.array([0, 0], np.int64), np.array([False, False])
    sensor = debt_sensor(times, np.array([34.0, 1.0]), permissive, WindowConfig())
    assert sensor.throttles_ms(np.array([3.0, 4.0])).tolist() == [[0, 334], [0, 0]]


@given(st.data())
def test_finds_exactly_the_lowest(data: st.DataObject) -> None:
    """The search finds the lowest limit in as many passes as the range has hexadecimal digits, or one more."""
    high = data.draw(st.integers(1, 10**12))
    threshold = data.draw(st.integers(1, high))
    passes = 0

    def good(tried: Sequence[int]) -> list[bool]:
        nonlocal passes
        passes += 1
        return [limit >= threshold for limit in tried]

    assert lowest(good, high) == threshold
    assert passes <= len(f"{high:x}") + 1


@given(steps=st.integers(1, 10**12))
def test_rounding_goes_up_and_not_far(steps: int) -> None:
    """Limits have three digits, and are less than 1 % higher."""
    rounded = rounded_up(steps)
    assert steps <= rounded < steps * 1.01 + 1
    assert len(str(rounded).rstrip("0")) <= 3


@pytest.mark.parametrize("kind", QuotaType)
def test_steps_and_limits_are_two_sides(kind: QuotaType) -> None:
    """A limit of so many steps is converted back to as many steps."""
    many = [1, 29, 105, 123_457]
    assert [steps_of(kind, limit_of(kind, steps)) for steps in many] == many


def seasons(*times: int, numbered: list[int] | None = None) -> Seasons:
    """Return requests at these times, all of one season by default."""
    numbers = np.array(numbered or [0] * len(times))
    return Seasons(times_ms=np.array(times), seasons=numbers, count=int(numbers.max()) + 1)


@pytest.mark.parametrize(
    ("times", "numbered", "throttles", "shares"),
    [
        # two throttles of two seconds that begin one second apart are three seconds of four
        ([0, 1_000, 3_000], [0, 0, 0], [2_000, 2_000, 0], [0.75]),
        # what lasts longer than one window after the last request has no effect that is known
        ([0], [0], [60_000], [1.0]),
        ([0, 10_000], [0, 0], [0, 60_000], [0.5]),
        # time belongs to the season of the request that it begins with
        ([0, 5_000], [0, 1], [500, 0], [0.5, 0.0]),
    ],
)
def test_shares_of_seasons(times: list[int], numbered: list[int], throttles: list[int], shares: list[float]) -> None:
    """The share of a season is the part of its time in which its requests are throttled."""
    assert seasons(*times, numbered=numbered).shares(np.array(throttles)).tolist() == shares


@given(
    times=st.lists(st.integers(0, 100_000), min_size=1, max_size=20).map(sorted),
    throttles=st.lists(st.integers(-5, 50_000), min_size=20, max_size=20),
    more=st.integers(1, 5_000),
)
def test_longer_throttles_are_never_a_smaller_share(times: list[int], throttles: list[int], more: int) -> None:
    """
    Longer throttles never make a smaller share, so that the lowest limit can be searched for.

    A share is from 0 to 1.
    """
    given_ = np.array(throttles[: len(times)])
    need = seasons(*times)
    (less,), (longer,) = need.shares(given_), need.shares(given_ + more)
    assert 0 <= less <= longer <= 1 or less == pytest.approx(longer)
