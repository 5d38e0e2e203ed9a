"""The page of teams and its answer as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.exporter.examples import COMPLETE, health, limits, snapshot, team, usage
from tests.exporter.page.parsed import HOSTILE, Page

from quotascope.exporter.api.answers import teams_document
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.page.render import PageFrame
from quotascope.exporter.page.team_list import TeamQuery, TeamsResult, find_teams, teams_page
from quotascope.exporter.snapshot import CapacityOrigin, EntityUsage, NodeUsage, Sold
from quotascope.exporter.teams import TeamAdder
from quotascope.metrics.catalog.teams import UNOWNED
from quotascope.metrics.kafka.entities import QuotaType

RULES = limits(nodes={broker: NodeSettings() for broker in "12"})
TEAMS = (
    team(HOSTILE.replace("\ud800", "")[:150], user="eve"),
    replace(team("payments", user="alice"), contact="#pay", budgets={QuotaType.PRODUCE: 40e6}),
    replace(team("idle", user="nobody"), budgets={QuotaType.FETCH: 1e6}),
)
ROWS = (
    usage(user="alice", usage=30e6, limit=20e6, configured=RULES, throttle_time_seconds=1.0),
    usage(user="alice", usage=20e6, limit=20e6, configured=RULES, broker="2", throttle_time_seconds=1.0),
    usage(user="eve", usage=1e6, configured=RULES),
    usage(user="bob", usage=3e6),
)


def found(*others: EntityUsage, **parameters: str) -> TeamsResult:
    """Return the teams of two brokers."""
    changes: dict[str, Any] = {
        "limits": RULES,
        "nodes": tuple(NodeUsage(broker=broker, coverage=COMPLETE) for broker in "12"),
    }
    state = snapshot(*ROWS, *others, **changes)
    sold = {(QuotaType.PRODUCE, "1"): Sold(limits=20e6, capacity=16e6, origin=CapacityOrigin.OBSERVED)}
    state = replace(state, teams=TeamAdder(TEAMS).add_up(state), sold=sold)
    return find_teams(state, TeamQuery.read(parameters))


def page(result: TeamsResult) -> Page:
    return Page(teams_page(result, PageFrame(teams=True)))


def test_teams_with_the_fullest_budget_first() -> None:
    """Teams are sorted by the used part of their budget, with usage and allowance, which may be unknown."""
    result = found()
    assert [one.name for one in result.teams] == ["payments", TEAMS[0].name, "idle", UNOWNED]
    rendered = page(result)
    payments = "50.0 MB/s of at most 40.0 MB/s; 125% of the budget of 40.0 MB/s; fairness 0.96"
    assert f"payments#pay11 by produce{payments}---" in rendered.text
    assert "1.00 MB/s, unlimited; fairness 0.50---" in rendered.text
    assert "no team103.00 MB/s, limit unknown; fairness 0.50---" in rendered.text
    assert "idle0--unknown; unknown of the budget of 1.00 MB/s--" in rendered.text
    assert "1produce20.0 MB/s16.0 MB/s, observed125%" in rendered.text
    assert "1 of 1 brokers are oversold. Limits of the entities" in rendered.text
    assert "b" not in rendered.tags
    assert "?team=payments&show=all" in " ".join(filter(None, rendered.values("a", "href")))


def test_teams_by_name_and_in_parts() -> None:
    """A part of the name is enough, and links lead to the next part."""
    assert [one.name for one in found(q="PAY").teams] == ["payments"]
    assert "No team matches." in page(found(q="none")).text
    rendered = page(found(size="1", offset="1"))
    assert "2 to 2 of 4." in rendered.text
    assert {"?size=1", "?offset=2&size=1"} <= {*rendered.values("a", "href")}


def test_the_page_leads_to_the_dashboard_of_teams() -> None:
    """The page has a link to this cluster's dashboard of teams where the configuration names a Grafana."""
    frame = PageFrame(teams=True, grafana_url="https://grafana.corp/", cluster="north & south")
    address = "https://grafana.corp/d/quotascope-teams?var-cluster=north+%26+south"
    assert address in Page(teams_page(found(), frame)).values("a", "href")
    assert "Grafana" not in page(found()).text


def test_a_page_without_teams_says_what_to_do() -> None:
    """A page without teams says what to do, and still shows the budget of brokers and that its use is unknown."""
    rendered = Page(teams_page(find_teams(snapshot(), TeamQuery()), PageFrame()))
    assert "No teams are configured" in rendered.text
    assert "unknown: no broker has both limits and a capacity that is known." in rendered.text
    assert "first collection" in Page(teams_page(None, PageFrame())).text


def test_sums_of_a_part_of_the_brokers_are_called_so() -> None:
    """A source that is down may be a broker with more of the usage."""
    result = found()
    state = replace(result.snapshot, sources=(health(up=False),))
    assert "sums are the least that they can be" in page(replace(result, snapshot=state)).text
    assert not teams_document(replace(result, snapshot=state)).complete


def test_a_sum_without_all_of_the_usage_is_called_so() -> None:
    """An unknown usage or team of a client makes sums and used part lower bounds."""
    unknown = usage(user="alice", client_id="new", usage=None, throttle_time_seconds=None, limit=1e6, configured=RULES)
    result = found(unknown)
    (text,) = (row for row in page(result).text.split("payments")[1:2])
    assert "≥ 1 by produce≥ 50.0 MB/s of at most" in text
    assert "; ≥ 125% of the budget of 40.0 MB/s" in text
    assert "; fairness unknown" in text
    payments, hostile, *_ = json.loads(encoded(teams_document(result)))["teams"]
    assert (payments["quotas"][0]["complete"], payments["quotas"][0]["throttled_complete"]) == (False, False)
    assert (payments["quotas"][1]["complete"], hostile["quotas"][0]["complete"]) == (True, True)
    assert "≥" not in page(found()).text
    state = replace(result.snapshot, sources=(health(up=False),))
    behind = find_teams(state, TeamQuery())
    assert not any(row.complete or row.throttled_complete for one in behind.teams for row in one.rows)
    assert "1unknown≥ 1.00 MB/s, unlimited" in page(behind).text


def test_limits_that_traffic_cannot_use_are_stranded() -> None:
    """The limit on a broker without the client is stranded; with an unknown limit or broker it is unknown."""
    limited = usage(user="eve", client_id="app", usage=1e6, limit=5e6, configured=RULES)
    text = page(found(limited)).text
    assert "2.00 MB/s, unlimited; stranded 5.00 MB/s; fairness 0.50" in text
    unknown = usage(user="alice", client_id="new", usage=1e6)
    text = page(found(unknown)).text
    assert "51.0 MB/s, limits ≥ 40.0 MB/s; 127% of the budget of 40.0 MB/s; stranded unknown; fairness" in text
    state = replace(found().snapshot, nodes=(NodeUsage(broker="1", coverage=COMPLETE), NodeUsage(broker="2")))
    state = replace(state, teams=TeamAdder(TEAMS).add_up(state))
    hidden = find_teams(state, TeamQuery())
    assert hidden.teams[0].rows[0].fairness is None
    assert "125% of the budget of 40.0 MB/s; stranded unknown; fairness unknown-" in page(hidden).text
    one = limits(nodes={"1": NodeSettings()})
    state = snapshot(ROWS[0], limits=one, nodes=state.nodes[:1])
    single = find_teams(replace(state, teams=TeamAdder(TEAMS).add_up(state)), TeamQuery())
    assert "fairness" not in page(single).text.partition("payments")[2].partition("Fairness:")[0]


def test_the_answer_has_null_for_what_is_unknown() -> None:
    """The answer has each team with its quota types and what is sold, and null for unknown figures."""
    answer = json.loads(encoded(teams_document(found())))
    assert (answer["total"], answer["configured"], answer["complete"]) == (4, True, True)
    payments, hostile, idle, unowned = answer["teams"]
    assert (payments["team"], payments["contact"], payments["entities"]) == ("payments", "#pay", 1)
    assert payments["quotas"][0] == {
        "quota_type": "produce",
        "usage": 50e6,
        "complete": True,
        "allowed": 40e6,
        "allowed_complete": True,
        "stranded": 0.0,
        "stranded_complete": True,
        "fairness": pytest.approx(50**2 / (2 * (30**2 + 20**2))),
        "unlimited_entities": 0,
        "budget": 40e6,
        "budget_ratio": 1.25,
        "throttled_entities": 1,
        "throttled_complete": True,
    }
    assert (hostile["quotas"][0]["allowed"], hostile["quotas"][0]["unlimited_entities"]) == (None, 1)
    assert (unowned["quotas"][0]["allowed"], unowned["quotas"][0]["allowed_complete"]) == (None, False)
    assert (unowned["quotas"][0]["stranded"], unowned["quotas"][0]["stranded_complete"]) == (None, False)
    assert (idle["quotas"][1]["usage"], idle["quotas"][1]["budget_ratio"]) == (None, None)
    assert unowned["team"] == UNOWNED
    assert answer["sold"] == [
        {"broker": "1", "quota_type": "produce", "limits": 20e6, "capacity": 16e6, "origin": "observed", "ratio": 1.25}
    ]
