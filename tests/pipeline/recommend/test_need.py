from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.recommend.rows import (
    HOUR,
    MONDAY,
    history,
    mutated,
    produced,
    request,
)

from quotascope.metrics import (
    ClientQuotaManager,
    Principal,
    QuotaEntity,
    QuotaType,
    Registry,
)
from quotascope.pipeline.recommend.need import Need, needs
from quotascope.pipeline.recommend.policy import Policy, Shape
from quotascope.pipeline.recommend.sensors import Windows
from quotascope.pipeline.recommend.share import Seasons
from quotascope.pipeline.recommend.steps import limit_of


def needed(rows: pa.Table, **policy: object) -> dict[QuotaType, Need]:
    """What a single entity on a single broker needs, by quota type."""
    usual = {"share": 0.1, "by_hour": False}
    chosen = Policy(**{**usual, **policy})  # type: ignore[arg-type]
    return {need.kind: need for need in needs(rows, chosen, Windows())}


def share_by_the_engine(sent: Sequence[tuple[int, int]], limit: float) -> float:
    """For how much of the time the engine of Kafka's quotas throttles, when clients go on as if it did not."""
    manager = ClientQuotaManager(Registry(), QuotaType.PRODUCE, MONDAY)
    manager.update_quota(QuotaEntity("alice"), limit)
    throttles = [
        manager.maybe_record_and_get_throttle_time(
            Principal("alice"), "app1", size, MONDAY + at
        )
        for at, size in sent
    ]
    times = np.array([at for at, _ in sent], np.int64)
    alone = np.zeros(len(sent), np.int64)
    seasons = Seasons(times_ms=times, whose=alone, count=1, window_ms=1_000)
    return float(seasons.shares(np.array(throttles, np.int64))[0])


@given(
    sent=st.lists(
        st.tuples(st.integers(0, 60_000), st.integers(1, 100_000)), min_size=1, max_size=40
    ).map(sorted),
    share=st.sampled_from([0.0, 0.01, 0.3]),
)  # fmt: skip
def test_limit_is_the_lowest_by_the_engine_itself(
    sent: list[tuple[int, int]], share: float
) -> None:
    """The engine keeps the share with it, and does not with one byte/s less."""
    rows = history(produced(at, size) for at, size in sent)
    found = needed(rows, share=share)[QuotaType.PRODUCE]
    assert share_by_the_engine(sent, found.steps) <= share
    if found.steps > 1:
        assert share_by_the_engine(sent, found.steps - 1) > share


def test_share_of_nothing_needs_the_highest_rate() -> None:
    """Whoever may never be throttled needs what was measured at the worst moment."""
    rows = history([produced(0, 50_000), produced(500, 50_000)])
    assert needed(rows, share=0.0)[QuotaType.PRODUCE].steps == 9_524  # 100 kB in 10.5 s


def test_each_broker_counts_by_itself() -> None:
    """An entity has a need for each broker that it uses."""
    rows = history([produced(0, 10_000), produced(0, 90_000, broker="2")])
    found = {need.broker: need.steps for need in needs(rows, Policy(share=0), Windows())}  # fmt: skip
    assert found == {"1": 1_000, "2": 9_000}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Shape.USER, {QuotaEntity("alice"): 3_000, QuotaEntity("bob"): 4_000}),
        (Shape.CLIENT, {QuotaEntity(None, "app1"): 5_000, QuotaEntity(None, "app2"): 2_000}),
        (Shape.PAIR, {
            QuotaEntity("alice", "app1"): 1_000,
            QuotaEntity("alice", "app2"): 2_000,
            QuotaEntity("bob", "app1"): 4_000,
        }),
    ],
)  # fmt: skip
def test_shape_says_who_shares(shape: Shape, expected: dict[QuotaEntity, int]) -> None:
    """All clients of a user, a client-id of all users, or each pair; rows may come in any order."""
    rows = history(
        [
            produced(0, 40_000, user="bob"),
            produced(0, 20_000, client_id="app2"),
            produced(0, 10_000),
        ]
    )
    chosen = Policy(share=0, shape=shape)
    assert {need.entity: need.steps for need in needs(rows, chosen, Windows())} == expected  # fmt: skip


def test_clients_without_an_id_have_no_rule_of_their_own() -> None:
    """Kafka stores no quota for an empty client-id."""
    rows = history([produced(0, 10_000, client_id="")])
    assert list(needs(rows, Policy(shape=Shape.PAIR), Windows())) == []


def test_nightly_peak_is_not_lost_in_a_quiet_week() -> None:
    """An hour that is throttled all along is too much, however short it is beside the others; and it is named."""
    quiet = [produced(at, 1_000) for at in range(0, 100 * HOUR, 60_000)]
    night = [produced(27 * HOUR + at, 100_000) for at in range(0, 300_000, 1_000)]
    rows = history(sorted(quiet + night, key=lambda row: row["timestamp"]))
    hourly = needed(rows, by_hour=True)[QuotaType.PRODUCE]
    together = needed(rows, by_hour=False)[QuotaType.PRODUCE]
    assert hourly.hour == 27  # Tue 03h
    assert hourly.steps > 90_000 > together.steps
    assert together.hour is None


def test_hours_are_those_of_the_zone() -> None:
    """Monday midnight in Greenwich is Sunday evening in New York."""
    rows = history([produced(0, 50_000), produced(500, 50_000)])
    zones = {zone: needed(rows, share=0.0, by_hour=True, zone=zone) for zone in (UTC, ZoneInfo("America/New_York"))}  # fmt: skip
    assert [found[QuotaType.PRODUCE].hour for found in zones.values()] == [0, 163]


def test_request_time_is_percent_of_a_thread() -> None:
    """Of the handler's and the network's thread, whatever its API; never throttled for more than a window."""
    rows = history(request(at, api_key=12, request_ms=10.0, network_ms=1.0) for at in range(0, 20_000, 100))  # fmt: skip
    found = needed(rows, share=0.0)[QuotaType.REQUEST]
    assert limit_of(QuotaType.REQUEST, found.steps) == pytest.approx(11.0, abs=0.6)
    assert found.requests == 200


def test_mutations_meet_on_the_controller() -> None:
    """They are added up over brokers, and a burst needs what it leaves in debt when the next one comes."""
    rows = history([mutated(0, 22, broker="1"), mutated(1_000, 1, broker="2")])
    (found,) = (need for need in needs(rows, Policy(share=0), Windows()) if need.kind is QuotaType.CONTROLLER_MUTATION)  # fmt: skip
    assert found.broker == "controller"
    assert limit_of(found.kind, found.steps) == 1.84  # 22 - 1.84 < 11 * 1.84


def test_old_clients_need_room_for_the_burst_itself() -> None:
    """They are charged before they are checked."""
    rows = history([mutated(0, 22, api_version=5)])
    assert needed(rows, share=0.0)[QuotaType.CONTROLLER_MUTATION].steps == 200
    new = history([mutated(0, 22)])
    assert needed(new, share=0.0)[QuotaType.CONTROLLER_MUTATION].steps == 1


def test_kinds_that_are_not_wanted_are_left_out() -> None:
    """Limits are looked for of the wanted quota types only."""
    rows = history([produced(0, 10, request_ms=1.0), mutated(5, 1)])
    assert set(needed(rows, kinds=[QuotaType.PRODUCE])) == {QuotaType.PRODUCE}
    assert len(needed(rows)) == 3


def test_empty_history_needs_nothing() -> None:
    """No request, no need."""
    assert list(needs(history([]), Policy(), Windows())) == []
