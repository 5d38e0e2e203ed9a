"""The numbers of an entity, in base units."""

from dataclasses import replace
from math import inf, nan

import pytest
from tests.exporter.exposition.oracle import lines
from tests.exporter.join.world import Rules, World, entity, limits, only

from quotascope.exporter.mapping import Bean, BeanColumn
from quotascope.exporter.snapshot import Entity, EntityUsage, LimitsHealth
from quotascope.metrics import QuotaEntity, QuotaType

FETCH, MUTATION = QuotaType.FETCH, QuotaType.CONTROLLER_MUTATION
RULES: Rules = {kind: {QuotaEntity("a"): 50.0} for kind in QuotaType}


@pytest.mark.parametrize("tokens", [4e18, 1.0145709240540253e20, inf, nan])
def test_a_bucket_that_just_lost_its_limit_has_no_tokens(tokens: float) -> None:
    """Recorded: within a second of the removal bob's 22 tokens were 1.1e19, and no limit of ours was wrong yet."""
    found = only(World(limits(RULES)).collect_one(entity(MUTATION, "a", tokens=tokens)))
    assert (found.tokens, found.burst_used) == (None, None)


@pytest.mark.parametrize("limit", [None, 0.0])
def test_no_ratio_without_something_to_divide_by(limit: float | None) -> None:
    """Unlimited is not zero percent, and a limit of nothing is none of Kafka's."""
    entity_ = Entity(broker="1", quota_type=MUTATION, user="a", client_id="", limit=limit, burst_tokens=limit)
    usage = EntityUsage(entity=entity_, usage=1.0, tokens=1.0)
    assert (usage.utilization, usage.burst_used) == (None, None)


def test_a_throttle_that_no_node_measures_is_not_zero() -> None:
    """Under KRaft the controller never records one for mutations, although clients wait: nothing is shown, which zero would not be."""
    world = World()
    seen = [
        world.collect_one(entity(kind, "bob", usage=1.0, throttle_ms=throttle_ms))
        for kind in (QuotaType.PRODUCE, QuotaType.CONTROLLER_MUTATION)
        for throttle_ms in (nan, 0.0)
    ]
    rows = [lines(each, "kafka_quota_throttle_time_seconds{") for each in seen]
    assert [only(each).throttle_time_seconds for each in seen] == [0.0, 0.0, None, 0.0]
    assert list(map(len, rows)) == [1, 1, 0, 1]


def test_unknown_settings_say_nothing_of_a_callback() -> None:
    """Whether a class decides is known by a node's settings or the tags of its beans, and else not."""
    bean = {"type": "Produce", "tenant": "t"}
    tagged = {BeanColumn(Bean.of("kafka.server", bean), "byte-rate"): 1.0}
    plain = entity(QuotaType.PRODUCE, "bob", usage=1.0)
    for configured, beans, expected in (
        (None, plain, []),
        (limits({}, nodes=("2",)), plain, []),
        (limits({}), plain, ["0.0"]),
        (None, tagged, ["1.0"]),
    ):
        shown = World(configured).collect_one(beans)
        rows = lines(shown, "quotascope_callback_detected{")
        assert [row.split()[-1] for row in rows] == expected


def test_changes_of_limits_that_are_not_read_are_not_zero() -> None:
    """Without the Admin API nothing is known of them."""
    shown = World().collect_one()
    assert len(lines(shown, "quotascope_limit_changes_total{")) == 5
    alone = replace(shown, limits_health=LimitsHealth(configured=False))
    assert lines(alone, "quotascope_limit_changes_total{") == []
