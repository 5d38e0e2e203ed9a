from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.prometheus.episodes import find_episodes
from quotascope.pipeline.prometheus.nodes import begin_of, gaps_of, nodes_of
from quotascope.pipeline.prometheus.past import Answer, Node, NoSamples, Past
from quotascope.pipeline.prometheus.promql import HOUR_S


@dataclass(frozen=True)
class Beat:
    selectors: Sequence[str] = ('{__name__=~"kafka_start"}',)
    by: tuple[str, ...] = ("instance",)
    count: int = 2

    @property
    def node_of(self) -> Mapping[tuple[str, ...], str]:
        return {("broker-1",): "1", ("broker-2",): "2"}


@dataclass
class Said:
    """A server with an answer for each query that begins with a text."""

    answers: Mapping[str, Sequence[Answer]]

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        assert at >= 0
        return next((answer for start, answer in self.answers.items() if promql.startswith(start)), ())


def one(instance: str, *samples: tuple[float, float]) -> Answer:
    return Answer({"instance": instance}, samples)


@pytest.mark.parametrize(("first", "begin"), [(7_205.0, 7_200.0), (10_800.0, 10_800.0), (9_000.0, 10_800.0)])
def test_a_period_begins_with_its_first_full_hour(first: float, begin: float) -> None:
    """A period begins with its first hour that has samples from the beginning."""
    said = Said({"min(": [Answer({}, [(20_000, first)])]})
    assert begin_of(said, Beat(), 0.0, 20 * HOUR_S) == begin


def test_samples_that_end_before_a_whole_hour_are_found() -> None:
    """A server that scraped for half an hour has a sample at none of the whole hours; its hour counts."""
    query = 'min(min_over_time(timestamp({__name__=~"kafka_start"})[7199999ms:300s]'
    said = Said({query: [Answer({}, [(7_200, 600.0)])]})
    assert begin_of(said, Beat(), 0.0, 2 * HOUR_S) == 0


def test_a_server_without_samples_of_nodes() -> None:
    """A server without samples of nodes is an error that says what to look at."""
    with pytest.raises(NoSamples, match="how long"):
        begin_of(Said({}), Beat(), 0.0, HOUR_S)
    with pytest.raises(NoSamples, match="--days"):
        nodes_of(Said({}), Beat(), 0.0, HOUR_S)


def test_gaps_are_the_quarters_without_samples() -> None:
    """Each node has its own gaps: quarters of an hour without samples, named by their ends."""
    answers = {"count_over_time": [one("broker-1", (900, 90), (1_800, 90), (3_600, 1)), one("broker-2", (900, 90))]}
    assert gaps_of(Said(answers), Beat(), 0.0, HOUR_S, 10) == [("2", 900, 3_600), ("1", 1_800, 2_700)]


@dataclass(frozen=True)
class Throttled:
    user: str
    client_id: str
    name: str = "kafka_throttle"
    node: str = "1"
    replica: str = ""
    quota_type: QuotaType = QuotaType.PRODUCE
    is_throttle: bool = True
    factor: float = 0.001
    user_label: str | None = "user"
    client_label: str | None = "client_id"
    part_labels: tuple[str, ...] = ("instance",)

    @property
    def labels(self) -> Mapping[str, str]:
        return {"instance": "broker-1", "user": self.user, "client_id": self.client_id}


def past_of(samples: Mapping[Throttled, Sequence[tuple[float, float]]], interval_s: float) -> Past:
    said = Said({"(kafka_throttle": [Answer(one.labels, times) for one, times in samples.items()]})
    nodes = {"1": Node(shortest_s=interval_s, longest_s=interval_s, seen_s=HOUR_S)}
    return Past(
        server=said, address="prometheus:9090", selector="", begin=0, end=HOUR_S, series=[*samples], nodes=nodes
    )


def test_throttles_without_a_long_pause_are_one_episode() -> None:
    """The pause is a minute, or two and a half scrapes where these are further apart."""
    times = [(0.0, 100.0), (60.0, 300.0), (121.0, 50.0), (150.0, 20.0)]
    for interval_s, expected in ((10, [(0, 60, 0.3), (121, 150, 0.05)]), (30, [(0, 150, 0.3)])):
        answer = find_episodes(past_of({Throttled("alice", "a"): times}, interval_s))
        keys = ("began_at", "ended_at", "longest_throttle_seconds")
        assert [tuple(row[key] for key in keys) for row in answer["episodes"]] == expected


def test_episodes_of_sums_may_be_of_a_client() -> None:
    """Episodes of sums that may concern a requested client are counted apart."""
    past = past_of({Throttled("alice", ""): [(0.0, 1.0)], Throttled("alice", "a"): [(0.0, 1.0)]}, 10)
    answer = find_episodes(past, (None, "a"))
    assert (len(answer["episodes"]), answer["measured_together"]) == (1, 1)
    answer = find_episodes(past, ("alice", None))
    assert (len(answer["episodes"]), answer["measured_together"]) == (2, 0)


def test_scrapes_that_are_far_apart_do_not_see_all_throttles() -> None:
    """Scrapes that are far apart report a share of throttles that they may have missed."""
    answer = find_episodes(past_of({Throttled("alice", "a"): []}, 120))
    assert answer["losses"]["brokers"] == [{"broker": "1", "missing_share": 0.5}]
