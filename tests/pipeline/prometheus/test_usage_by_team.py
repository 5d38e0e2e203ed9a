"""Usage of teams from the samples of a Prometheus."""

from __future__ import annotations

import json

import pytest
from tests.exporter.examples import team

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.prometheus.evidence import Evidence, Sight
from quotascope.pipeline.prometheus.past import Node, Past
from quotascope.pipeline.prometheus.usage import PastUsage, PastUsages, as_csv, by_team, document, report
from quotascope.quotas.team_finder import TeamFinder


def used(user: str, amount: float, *, sight: Sight = Sight.WHOLE, coverage: float = 1.0) -> PastUsage:
    evidence = Evidence()
    evidence.amount = amount
    return PastUsage(user=user, client_id="", kind=QuotaType.PRODUCE, evidence=evidence, sight=sight, coverage=coverage)


class _NoServer:
    """A server that nothing is asked of."""


def test_what_is_unknown_of_a_client_is_unknown_of_its_team() -> None:
    """A team has the worst sight and the least coverage of its clients; clients without a team are one row."""
    past = Past(
        server=_NoServer(),  # type: ignore[arg-type]
        series=(),
        nodes={"1": Node(shortest_s=10, longest_s=10, seen_s=3_600)},
        address="prometheus:9090",
        selector="",
        begin=0.0,
        end=3_600.0,
    )
    usages = [used("alice", 5e6), used("adam", 2e6, sight=Sight.SPARSE, coverage=0.5), used("bob", 1e6)]
    teams = TeamFinder((team("payments", user_pattern="a.*"),))
    answer = by_team(PastUsages(past=past, usages=usages), teams)
    payments, others = answer.usages
    assert (payments.team, payments.amount, payments.sight, payments.is_lower_bound) == (
        "payments", 7e6, Sight.SPARSE, True
    )  # fmt: skip
    assert (others.team, others.amount, others.is_lower_bound) == ("__unowned__", 1e6, False)
    (block,) = report(answer).blocks
    assert [row[0] for row in block.rows] == ["payments", "no team"]  # type: ignore[union-attr]
    assert [row["team"] for row in document(answer)["clients"]] == ["payments", "__unowned__"]
    assert as_csv(answer).splitlines()[0].startswith("team,quota_type,begin")


@pytest.mark.parametrize("amount", [float("nan"), float("inf")])
def test_a_sum_with_a_sample_that_is_no_number_is_unknown(amount: float) -> None:
    """A sum of NaN or infinity is unknown in each form, is said to be, and is no part of the shares of others."""
    past = Past(
        server=_NoServer(),  # type: ignore[arg-type]
        series=(),
        nodes={"1": Node(shortest_s=10, longest_s=10, seen_s=3_600)},
        address="prometheus:9090",
        selector="",
        begin=0.0,
        end=3_600.0,
    )
    usages = [used("carol", 3e6), used("alice", amount), used("adam", 2e6)]
    answer = by_team(PastUsages(past=past, usages=usages), TeamFinder((team("payments", user_pattern="a.*"),)))
    clients = json.loads(json.dumps(document(answer), allow_nan=False))["clients"]
    assert [(one["team"], one["amount"]) for one in clients] == [("payments", None), ("__unowned__", 3e6)]
    (block,) = report(answer).blocks
    assert [row[1] for row in block.rows] == ["unknown", "3 MB"]  # type: ignore[union-attr]
    assert "NaN or infinite" in " ".join(report(answer).caveats)


def test_a_hostile_name_of_a_team_is_one_safe_line() -> None:
    """A hostile name of a team is one safe line in a terminal, and unchanged in JSON."""
    name = "t\n\x1b[2J\u202e"
    past = Past(
        server=_NoServer(),  # type: ignore[arg-type]
        series=(),
        nodes={"1": Node(shortest_s=10, longest_s=10, seen_s=3_600)},
        address="prometheus:9090",
        selector="",
        begin=0.0,
        end=3_600.0,
    )
    answer = by_team(PastUsages(past=past, usages=[used("alice", 5e6)]), TeamFinder((team(name, user="alice"),)))
    (block,) = report(answer).blocks
    assert [row[0] for row in block.rows] == ["t\\n\\x1b[2J\\u202e"]  # type: ignore[union-attr]
    assert document(answer)["clients"][0]["team"] == name
