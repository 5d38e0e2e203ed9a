"""How many queries a back-test takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.pipeline.prometheus.backtest import TooManyLimits, backtest
from quotascope.pipeline.prometheus.past import Answer, Node, Past
from quotascope.pipeline.prometheus.promql import HOUR_S
from quotascope.quotas import IpEntity, QuotaSet
from quotascope.quotas.candidates import Candidate

KINDS = {
    QuotaType.PRODUCE: "producer_byte_rate",
    QuotaType.FETCH: "consumer_byte_rate",
    QuotaType.REQUEST: "request_percentage",
}


@dataclass(frozen=True)
class Measured:
    """A usage of a user on the only node."""

    user: str
    quota_type: QuotaType
    client_id: str = ""
    node: str = "1"
    replica: str = ""
    is_throttle: bool = False
    factor: float = 1.0
    user_label: str | None = "user"
    client_label: str | None = None
    part_labels: tuple[str, ...] = ("instance",)

    @property
    def name(self) -> str:
        return f"kafka_{self.quota_type.label}"

    @property
    def labels(self) -> Mapping[str, str]:
        return {"instance": "broker-1", "user": self.user}


@dataclass
class Answering:
    """A server that has 100 samples of each series, and notes its queries."""

    series: Sequence[Measured]
    asked: list[str] = field(default_factory=list)

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        self.asked.append(promql)
        (name,) = set(re.findall("kafka_[a-z]+", promql))
        return [Answer(one.labels, [(at, 100.0)]) for one in self.series if one.name == name]


def tried(limits_of: Mapping[QuotaType, int]) -> tuple[Answering, Past, Candidate]:
    """Return the past of users with so many limits of each quota type, and a candidate with the same limits."""
    quotas: dict[QuotaEntity | IpEntity, dict[str, float]] = {}
    series = []
    for place, (kind, count) in enumerate(limits_of.items(), start=1):
        for number in range(count):
            user = f"user-{number}"
            quotas.setdefault(QuotaEntity(user), {})[KINDS[kind]] = 10_000.0 * place + number
            series.append(Measured(user, kind))
    server = Answering(series)
    nodes = {"1": Node(shortest_s=10, longest_s=10, seen_s=HOUR_S)}
    past = Past(server=server, address="", selector="", begin=0.0, end=HOUR_S, series=series, nodes=nodes)
    return server, past, Candidate(name="tried", quotas=QuotaSet(quotas))


def test_a_limit_is_asked_of_series_of_its_quota_type_alone() -> None:
    """Sixty limits of three quota types take a query each, and three for each type; each entity has its outcome."""
    server, past, candidate = tried({QuotaType.PRODUCE: 30, QuotaType.FETCH: 20, QuotaType.REQUEST: 10})
    (result,) = backtest(past, [candidate]).results
    assert len(server.asked) == 60 + 3 * 3
    assert len(set(server.asked)) == len(server.asked)
    assert {(one.kind, one.user) for one in result.outcomes} == {(one.quota_type, one.user) for one in server.series}
    assert {one.evidence.above_s for one in result.outcomes} == {1_000.0}


def test_the_most_limits_are_of_a_quota_type() -> None:
    """Too many limits of one quota type are refused by its name before any query; each type has its own maximum."""
    server, past, candidate = tried(dict.fromkeys(KINDS, 170))
    backtest(past, [candidate])
    assert len(server.asked) == 510 + 9
    server, past, candidate = tried({QuotaType.PRODUCE: 3, QuotaType.FETCH: 501})
    with pytest.raises(TooManyLimits, match="501 different limits of fetch"):
        backtest(past, [candidate])
    assert server.asked == []
