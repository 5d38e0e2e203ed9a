from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pipeline.prometheus import promql
from quotascope.pipeline.prometheus.evidence import Evidence, Sight, by_node
from quotascope.pipeline.prometheus.past import Answer, Node, Past, QueryTooLarge, Target
from quotascope.pipeline.prometheus.promql import HOUR_S, Samples, ranges
from quotascope.pipeline.recommend.policy import RuleShape

DAY_S = 24 * HOUR_S


@dataclass(frozen=True)
class Series:
    """A series as in the exporter's inventory."""

    user: str
    client_id: str = ""
    node: str = "1"
    replica: str = ""
    name: str = "kafka_x"
    quota_type: QuotaType = QuotaType.PRODUCE
    is_throttle: bool = False
    factor: float = 1.0
    user_label: str | None = "user"
    client_label: str | None = "client_id"

    @property
    def part_labels(self) -> tuple[str, ...]:
        return ("instance",)

    @property
    def labels(self) -> Mapping[str, str]:
        return {"instance": f"broker-{self.node}", "user": self.user, "client_id": self.client_id}


@dataclass
class Limited:
    """A server that gives up queries of too many samples, and answers 1 for each series of the others."""

    series: Sequence[Series]
    most_hours: float
    asked: list[tuple[str, float]] = field(default_factory=list)

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        hours = (float(promql.partition("[")[2].partition("ms")[0]) + 1) / 1_000 / HOUR_S
        chosen = [answer for answer in self.series if "instance=" not in promql or answer.labels["instance"] in promql]
        if hours * len(chosen) > self.most_hours:
            raise QueryTooLarge("Prometheus: too many samples")
        self.asked.append((promql, at))
        return [Answer(answer.labels, [(at, hours)]) for answer in chosen]


def past_of(server: Limited, days: float = 1, **values: object) -> Past:
    nodes = {
        node: Node(shortest_s=10, longest_s=10, seen_s=days * DAY_S) for node in {one.node for one in server.series}
    }
    usual = {"address": "prometheus:9090", "selector": "", "begin": 0.0, "end": days * DAY_S}
    return Past(server=server, series=server.series, nodes=nodes, **{**usual, **values})  # type: ignore[arg-type]


THREE = [Series("alice", node=node) for node in ("1", "2", "3")]


@pytest.mark.parametrize("most_hours", [3, 4, 7, 1_000])
def test_a_period_is_divided_until_the_server_answers(most_hours: float) -> None:
    """Whatever the server takes, the ranges of a series add up to the period, each hour once."""
    server = Limited(THREE, most_hours)
    past = past_of(server)
    answers = list(past.ask(past.groups(throttles=False), {"seen": promql.seen}))
    hours: dict[str, float] = {}
    for _, target, answer in answers:
        hours[target.node] = hours.get(target.node, 0) + answer.samples[0][1]
    assert hours == pytest.approx(dict.fromkeys("123", 24.0))


def test_an_hour_that_is_too_large_is_divided_by_node() -> None:
    """Each node is queried alone where not even an hour of all nodes is answered."""
    server = Limited(THREE, 1)
    past = past_of(server)
    answers = list(past.ask(past.groups(throttles=False), {"seen": promql.seen}))
    assert sum(answer.samples[0][1] for _, _, answer in answers) == pytest.approx(72)
    assert all("instance=" in query for query, _ in server.asked)


def test_a_quantile_of_the_whole_period_is_divided_by_node_alone() -> None:
    """Quantiles of ranges cannot be combined, so a range that is too large is an error that says what to do."""
    server = Limited(THREE, 24)
    past = past_of(server)
    answers = list(past.ask(past.groups(throttles=False), {"seen": promql.seen}, divisible=False))
    assert len(answers) == 3
    past = past_of(Limited(THREE, 23))
    with pytest.raises(QueryTooLarge, match="fewer --days"):
        list(past.ask(past.groups(throttles=False), {"seen": promql.seen}, divisible=False))


def test_many_series_are_asked_about_in_shorter_ranges_at_once() -> None:
    """A query of many series is divided into ranges with fewer samples than servers permit by default."""
    server = Limited([Series(f"user-{number}") for number in range(10_000)], float("inf"))
    past = past_of(server, days=1)
    steps: list[tuple[int, int]] = []
    list(
        past.ask(
            past.groups(throttles=False), {"seen": promql.seen}, progress=lambda done, of: steps.append((done, of))
        )
    )
    length_s = past.lengths(past.groups(throttles=False)[0], divisible=True)
    assert 10_000 * length_s / 10 <= past.most_samples
    assert steps[-1] == (len(server.asked), len(server.asked))
    assert len(server.asked) == ceil(24 * HOUR_S / length_s) > 1


def test_sums_are_asked_for_by_the_labels_of_their_names() -> None:
    """The server sums the clients of a user on each node."""
    series = [Series("alice", "a"), Series("alice", "b"), Series("", "c")]
    past = past_of(Limited(series, 1_000))
    (group,) = past.groups(throttles=False, shape=RuleShape.USER)
    assert group.samples.expression == "sum by (instance,user) (kafka_x)"
    target = group.target({"instance": "broker-1", "user": "alice"})
    assert target is not None
    assert (target.user, target.client_id) == ("alice", None)
    assert past.left_out(RuleShape.USER) == 1
    assert past.left_out(None) == 0


def test_an_answer_about_something_else_is_left_out() -> None:
    """Series of one name with other quota types or resources, such as replication, are left out."""
    past = past_of(Limited([Series("alice")], 1_000))
    (group,) = past.groups(throttles=False)
    assert group.target({"instance": "broker-1", "user": "alice", "resource": "LeaderReplication"}) is None


def test_names_in_selectors_are_quoted() -> None:
    """A label's value in a selector is quoted, so that it cannot end its string."""
    samples = Samples(name="kafka_x", node=("instance", 'a"} or vector(1) #\n\\'))
    assert samples.expression == r'kafka_x{instance="a\"} or vector(1) #\n\\"}'


@given(hours=st.integers(1, 500), length=st.integers(1, 48))
def test_ranges_cover_a_period_without_overlap(hours: int, length: int) -> None:
    """Each hour is in one range, and all but the first have the same length."""
    parts = ranges(0.0, hours * HOUR_S, length * HOUR_S)
    assert [begin for begin, _ in parts[1:]] == [end for _, end in parts[:-1]]
    assert (parts[0][0], parts[-1][1]) == (0, hours * HOUR_S)
    assert {end - begin for begin, end in parts[1:]} <= {length * HOUR_S}


def _target(**values: object) -> Target:
    usual = {"kind": QuotaType.PRODUCE, "user": "alice", "client_id": None, "node": "1", "replica": "", "factor": 1.0}
    return Target(**{**usual, "is_throttle": False, **values})  # type: ignore[arg-type]


def test_ranges_add_up_and_servers_do_not() -> None:
    """Times of ranges add up, with the highest need; of two servers, the one with more time counts."""
    one, other = _target(replica="a"), _target(replica="b")
    answers = [("seen_s", one, 10.0), ("seen_s", one, 5.0), ("need", one, 3.0), ("need", one, 2.0)]
    nodes_by_entity = by_node([*answers, ("seen_s", other, 12.0), ("need", other, 4.0)])
    ((_, nodes),) = nodes_by_entity.items()
    assert (nodes["1"].seen_s, nodes["1"].need) == (15.0, 4.0)


def test_nodes_are_in_order_however_a_server_answers() -> None:
    """Of nodes with equal figures the same one is named, as answers of a server are in no order."""
    answers = [("need", _target(node=node), 4.0) for node in ("10", "2", "1")]
    for in_some_order in (answers, answers[::-1]):
        (nodes,) = by_node(in_some_order).values()
        assert [*nodes] == ["1", "2", "10"]


@pytest.mark.parametrize(
    ("evidence", "interval_s", "sight"),
    [
        (Evidence(active_s=3_600), 10, Sight.WHOLE),
        (Evidence(active_s=3_600), 15, Sight.SPARSE),
        (Evidence(active_s=1_600, changes=200), 10, Sight.BURSTS),
        (Evidence(active_s=1_600, changes=200), 30, Sight.BURSTS),
        (Evidence(active_s=1_600, changes=200), 5, Sight.WHOLE),
        (Evidence(active_s=1_600, changes=2), 10, Sight.WHOLE),
        (Evidence(), 30, Sight.UNSEEN),
        (Evidence(), 10, Sight.WHOLE),
    ],
)
def test_sight(evidence: Evidence, interval_s: float, sight: Sight) -> None:
    """A load is seen whole if scrapes are not further apart than the window, and its times above 0 are long."""
    assert evidence.sight(interval_s, WindowConfig()) is sight


def test_longer_windows_are_seen_by_fewer_scrapes() -> None:
    """Brokers that measure over a minute are seen whole each minute."""
    evidence = Evidence(active_s=3_600)
    assert evidence.sight(60, WindowConfig(samples=61)) is Sight.WHOLE


def test_the_step_is_the_shortest_interval() -> None:
    """The step is the shortest interval of all nodes, and nodes with a longer one are marked by their own."""
    past = past_of(Limited(THREE, 1))
    nodes = {"1": Node(shortest_s=9.97, longest_s=9.97, seen_s=1), "2": Node(shortest_s=60, longest_s=60, seen_s=1)}
    past = replace(past, nodes=nodes)
    assert (past.step_s, past.interval_s) == (10, 60)
