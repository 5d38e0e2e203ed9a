"""Costs from counters of exporters: hours, restarts of counters, replicas and clusters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pytest
from tests.exporter.examples import team
from tests.pipeline.runs.prometheus import one_cluster

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.cost.charges import SameName, find_charges
from quotascope.pipeline.cost.counters import uses_of_counters
from quotascope.pipeline.cost.month import Month
from quotascope.pipeline.prometheus.past import Answer, NoSamples

NOVEMBER = Month(2026, 11)
BEGIN_S, END_S = NOVEMBER.span_s
PRODUCED, FETCHED = "kafka_quota_team_produced_bytes_total", "kafka_quota_team_fetched_bytes_total"
SEEN = "kafka_quota_team_seen_seconds_total"
_NAME = re.compile(r"increase\((\w+)\{(.*?)\}")
_RANGE = re.compile(r"\[(\d+)ms:3600s\]\)$")


Growth: TypeAlias = tuple[Mapping[str, str], float, float]
"""Labels, the end of an hour, and what a counter grew by in it."""


class Grown:
    """A server whose counters grew by an amount in each hour, by family, labels, and the hour's end."""

    def __init__(self, growth: Mapping[str, Sequence[Growth]]) -> None:
        self._growth = growth
        self.queries: list[str] = []

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        self.queries.append(promql)
        if promql.startswith("count without"):
            return []
        name, length = _NAME.search(promql), _RANGE.search(promql)
        assert name is not None
        assert length is not None
        begin = at - (int(length[1]) + 1) / 1_000
        sums: dict[tuple[tuple[str, str], ...], float] = {}
        for labels, end, value in self._growth.get(name[1], ()):
            if begin < end <= at:
                key = tuple(sorted(labels.items()))
                sums[key] = sums.get(key, 0.0) + value
        return [Answer(dict(key), [(at, value)]) for key, value in sums.items()]


def hours(
    labels: Mapping[str, str], value: float, first: int, last: int
) -> list[tuple[Mapping[str, str], float, float]]:
    """Return a growth for each of some hours of November; the first is 1."""
    return [(labels, BEGIN_S + 3_600 * hour, value) for hour in range(first, last + 1)]


def test_each_hour_of_the_month_counts_once() -> None:
    """Each hour of the month counts once, though queries of a day meet at midnight; hours outside do not count."""
    server = Grown({
        PRODUCED: hours({"team": "payments"}, 1e9, -2, 723),
        SEEN: hours({}, 3_600.0, -2, 723),
    })  # fmt: skip
    (use,) = uses_of_counters(
        server, "prometheus:9090", 'job="quotascope"', NOVEMBER, END_S + 1, "prod", check=one_cluster
    )
    assert use.bytes["payments", QuotaType.PRODUCE].amount == 720 * 10**9
    assert (use.cluster, use.seen_s, use.until_s) == ("prod", 720 * 3_600, END_S)
    assert not use.lacks(NOVEMBER)
    assert all('{job="quotascope"}' in query for query in server.queries)


def test_clusters_and_hours_that_nobody_counted_are_told_apart() -> None:
    """A cluster is known by its label, and hours that no exporter counted make its cost a lower bound."""
    server = Grown({
        PRODUCED: [
            *hours({"team": "payments", "cluster": "eu"}, 1e9, 1, 720),
            *hours({"team": "payments", "cluster": "us"}, 1e9, 1, 100),
        ],
        SEEN: [*hours({"cluster": "eu"}, 3_600.0, 1, 720), *hours({"cluster": "us"}, 3_600.0, 1, 100)],
    })  # fmt: skip
    uses = uses_of_counters(server, "prometheus:9090", "", NOVEMBER, END_S + 1, "prod", check=one_cluster)
    assert [(use.cluster, use.seen_s / 3_600) for use in uses] == [("eu", 720), ("us", 100)]
    bill = find_charges(uses, (), NOVEMBER, END_S + 1)
    assert [(charge.team, charge.at_least, charge.approximate) for charge in bill.charges] == [
        ("payments", False, True),
        ("payments", True, True),
    ]


def test_a_month_that_has_not_ended_is_read_up_to_its_last_full_hour() -> None:
    """An unfinished month is read up to its last full hour, which all exporters have counted."""
    server = Grown({PRODUCED: hours({"team": "etl"}, 10.0, 1, 720), SEEN: hours({}, 3_600.0, 1, 720)})
    (use,) = uses_of_counters(
        server, "prometheus:9090", "", NOVEMBER, BEGIN_S + 30.5 * 3_600, "prod", check=one_cluster
    )
    assert (use.bytes["etl", QuotaType.PRODUCE].amount, use.seen_s / 3_600) == (300, 30)


def test_no_counter_is_no_answer() -> None:
    """A server without counters is refused with what exporters need to have them."""
    with pytest.raises(NoSamples, match="needs `teams: FILE`"):
        uses_of_counters(Grown({}), "prometheus:9090", "", NOVEMBER, END_S + 1, "prod", check=one_cluster)


def test_a_team_may_produce_and_fetch() -> None:
    """Both directions of a team are counted, each for itself."""
    server = Grown({
        PRODUCED: hours({"team": "search"}, 2e9, 1, 720),
        FETCHED: hours({"team": "search"}, 5e9, 1, 720),
        SEEN: hours({}, 3_600.0, 1, 720),
    })  # fmt: skip
    (use,) = uses_of_counters(server, "prometheus:9090", "", NOVEMBER, END_S + 1, "prod", check=one_cluster)
    assert {kind: used.amount for (_, kind), used in use.bytes.items()} == {
        QuotaType.PRODUCE: 1_440 * 10**9,
        QuotaType.FETCH: 3_600 * 10**9,
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_an_unknown_amount(value: float) -> None:
    """A counter that grew by NaN or by infinity leaves the month's bytes unknown, and its seconds not seen."""
    server = Grown({
        PRODUCED: [*hours({"team": "search"}, 1e9, 1, 719), *hours({"team": "search"}, value, 720, 720)],
        SEEN: [*hours({}, 3_600.0, 1, 696), *hours({}, value, 697, 720)],
    })  # fmt: skip
    (use,) = uses_of_counters(server, "prometheus:9090", "", NOVEMBER, END_S + 1, "prod", check=one_cluster)
    assert use.bytes["search", QuotaType.PRODUCE].amount is None
    assert (use.seen_s / 3_600, use.lacks(NOVEMBER)) == (696, True)


def test_a_cluster_without_a_label_has_no_name_of_another() -> None:
    """Series with the name as their label and series without a label are two clusters, which are refused by name."""
    server = Grown({
        PRODUCED: [
            *hours({"team": "search", "cluster": "kafka"}, 1e9, 1, 720),
            *hours({"team": "search"}, 3e9, 1, 720),
        ],
        SEEN: [*hours({"cluster": "kafka"}, 3_600.0, 1, 720), *hours({}, 3_600.0, 1, 720)],
    })  # fmt: skip
    uses = uses_of_counters(server, "prometheus:9090", "", NOVEMBER, END_S + 1, "kafka", check=one_cluster)
    with pytest.raises(SameName, match=r"two clusters are named 'kafka'.*--cluster-name"):
        find_charges(uses, (team("search", user="alice"),), NOVEMBER, END_S + 1)
