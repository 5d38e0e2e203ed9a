"""The bytes of teams that the exporter counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter.examples import NOW, health, snapshot, team, usage

from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.snapshot.teams import TeamSums
from quotascope.exporter.teams import TeamAdder, TeamCounter
from quotascope.exporter.teams.counted import LONGEST_S
from quotascope.metrics.kafka.entities import QuotaType

TEAMS = (team("payments", user_pattern="a.*"), team("etl", user="spark"))


def moving(produced: float | None, fetched: float = 0.0, **changes: Any) -> Snapshot:
    """Return a snapshot in which alice produces and spark fetches at these rates."""
    return snapshot(
        usage(QuotaType.PRODUCE, "alice", usage=produced),
        usage(QuotaType.FETCH, "spark", usage=fetched),
        **changes,
    )


class Counting:
    """A counter that is told of collections."""

    def __init__(self) -> None:
        self._counter, self.adder = TeamCounter(), TeamAdder(TEAMS)
        self.last = snapshot()

    def collected(self, state: Snapshot, now_seconds: float) -> TeamSums:
        """Return the sums after a collection at some steady seconds."""
        sums = self.adder.add_up(state)
        sums = self._counter.count(sums, self.adder.usage_on_fresh_nodes(state, sums), state, now_seconds)
        self.last = replace(state, teams=sums)
        return sums

    def count(self, state: Snapshot, now_seconds: float) -> dict[str, float]:
        """Return the counters after a collection at some steady seconds."""
        self.collected(state, now_seconds)
        return self.series()

    def series(self) -> dict[str, float]:
        """Return the series of counters as they are rendered."""
        text = Renderer().render(self.last, NOW).decode()
        return {
            f"{sample.name.removeprefix('kafka_quota_team_')} {sample.labels.get('team', '')}".strip(): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name.startswith("kafka_quota_team_") and sample.name.endswith("_total")
        }


def test_a_rate_stands_for_the_time_since_the_last_collection() -> None:
    """A rate counts for the time since the last collection, and the first collection counts nothing."""
    counting = Counting()
    assert counting.count(moving(100.0), 0.0) == {
        "produced_bytes_total payments": 0.0,
        "produced_bytes_total etl": 0.0,
        "fetched_bytes_total payments": 0.0,
        "fetched_bytes_total etl": 0.0,
        "seen_seconds_total": 0.0,
    }
    counting.count(moving(100.0, 7.0), 10.0)
    series = counting.count(moving(300.0, 7.0), 15.0)
    assert series["produced_bytes_total payments"] == 1_000 + 1_500
    assert series["fetched_bytes_total etl"] == 7 * 15
    assert series["seen_seconds_total"] == 15


def test_time_without_collections_is_not_seen() -> None:
    """A pause longer than a rate may stand for adds neither bytes nor seconds."""
    counting = Counting()
    counting.count(moving(100.0), 0.0)
    series = counting.count(moving(100.0), LONGEST_S + 1)
    assert (series["produced_bytes_total payments"], series["seen_seconds_total"]) == (0.0, 0.0)
    series = counting.count(moving(100.0), 2 * LONGEST_S + 1)
    assert (series["produced_bytes_total payments"], series["seen_seconds_total"]) == (100 * LONGEST_S, LONGEST_S)


@pytest.mark.parametrize(
    "changes",
    [{"sources": (health(node_id="1", up=False),)}, {"sources": (health(node_id="2", late=True),)}, {"unsent": 3}],
)
def test_time_in_which_a_node_is_missing_is_not_seen(changes: dict[str, Any]) -> None:
    """While a node is missing, the bytes on the others are counted, and the seconds are not."""
    counting = Counting()
    counting.count(moving(100.0), 0.0)
    series = counting.count(moving(100.0, **changes), 10.0)
    assert (series["produced_bytes_total payments"], series["seen_seconds_total"]) == (1_000, 0.0)


@pytest.mark.parametrize("old", ["late", "stale"])
def test_the_last_rate_of_a_node_that_hangs_is_counted_once(old: str) -> None:
    """While a node's numbers are those of an earlier read, its bytes are unknown; those of the others are counted."""
    counting = Counting()
    rows = (usage(QuotaType.PRODUCE, "alice", usage=1_000.0), usage(QuotaType.PRODUCE, "anna", broker="2", usage=30.0))
    fresh = snapshot(*rows, sources=(health("a", node_id="1"), health("b", node_id="2")))
    hung = snapshot(*rows, sources=(health("a", node_id="1", **{old: True}), health("b", node_id="2")))
    counting.count(fresh, 0.0)
    assert counting.count(fresh, 15.0)["produced_bytes_total payments"] == 15_450
    for at in (30.0, 45.0, 60.0):
        series = counting.count(hung, at)
    assert (series["produced_bytes_total payments"], series["seen_seconds_total"]) == (15_450 + 3 * 450, 15)
    assert counting.count(fresh, 75.0)["produced_bytes_total payments"] == 15_450 + 3 * 450 + 15_450


def test_a_hung_source_on_stand_by_hides_no_node() -> None:
    """The rates of a node are of the source in use, whatever another one of it does."""
    counting = Counting()
    sources = (health("a", node_id="1"), health("b", node_id="1", late=True, stand_by_of="1"))
    counting.count(moving(100.0, sources=sources), 0.0)
    series = counting.count(moving(100.0, sources=sources), 10.0)
    assert (series["produced_bytes_total payments"], series["seen_seconds_total"]) == (1_000, 10)


def test_what_is_unknown_adds_nothing() -> None:
    """Unknown usage adds nothing to a team's counter."""
    counting = Counting()
    counting.count(moving(100.0), 0.0)
    counting.count(moving(100.0), 10.0)
    assert counting.count(moving(None), 20.0)["produced_bytes_total payments"] == 1_000


def test_another_file_of_teams_keeps_the_counters_of_the_same_names() -> None:
    """A new file of teams keeps counters by name; a removed team ends, and a new one begins at 0."""
    counting = Counting()
    counting.count(moving(100.0, 7.0), 0.0)
    counting.count(moving(100.0, 7.0), 10.0)
    counting.adder = TeamAdder((team("new", user="spark"), team("payments", user="alice")))
    series = counting.count(moving(100.0, 7.0), 20.0)
    assert series["produced_bytes_total payments"] == 2_000
    assert series["fetched_bytes_total new"] == 70
    assert not [name for name in series if name.endswith(" etl")]


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0.001, 200)), max_size=20))
def test_counters_never_go_back(steps: list[tuple[float, float]]) -> None:
    """Counters never decrease, and are the sum of rates times seconds over all but too long pauses."""
    counting, now_seconds, naive = Counting(), 0.0, 0.0
    place = counting.collected(moving(0.0), now_seconds).names.index("payments")
    counted = [0.0]
    for rate, pause in steps:
        now_seconds += pause
        passed = now_seconds - (now_seconds - pause)
        naive += rate * passed if passed <= LONGEST_S else 0.0
        counted.append(counting.collected(moving(rate), now_seconds).bytes[QuotaType.PRODUCE][place])
    assert counted == sorted(counted)
    assert counted[-1] == pytest.approx(naive, rel=1e-6, abs=1e-3)
    assert counting.series()["produced_bytes_total payments"] == counted[-1]
