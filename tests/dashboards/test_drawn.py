"""Dashboards as Grafana's own components draw them: two clusters with all features, the demo, and no data."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.dashboards.boards import panels_of
from tests.dashboards.drawn import Drawing, View
from tests.dashboards.stored import DEMO_SCRAPE_SECONDS, DEMO_SECONDS, DEMO_START, NOTHING_AT, NOW, SCRAPE_SECONDS
from tests.integration.prometheus import Prometheus

from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

BOARDS = grafana_dashboards(Scope())
pytestmark = pytest.mark.real
Json = dict[str, Any]
ENTITY: Final = "quotascope-entity"
CHOSEN: Final = {
    "two clusters": {"user": "alice", "client_id": "app"},
    "demo": {"user": "etl", "client_id": "spark-nightly"},
    "nothing": {"user": "etl", "client_id": "spark-nightly"},
}
"""On the dashboard of an entity."""

NOT_IN_THE_DEMO: Final[Mapping[str, set[str]]] = {
    "quotascope-overview": set(),
    ENTITY: {
        # of a client that only produces
        *("Fetched", "Spark jobs behind it"),
        *("Tokens left, of the burst", "Controller mutations per second"),
    },
    "quotascope-mutations": set(),
    "quotascope-brokers": {
        # no threads but handlers, no sockets, no other broker, no disk
        "Idle network and controller threads",
        *("Delay of refused connections", "Delay of remote storage"),
        *("New connections, by address", "Remote storage"),
        *("New connections, by broker", "Throttled replication"),
        *("New connections, by listener", "Wait for the next connection"),
    },
    "quotascope-shadow": {
        # no shadow; the lines of what is in force are there
        *("Shadows", "Clients nearest to the limits of a shadow")
    },
    "quotascope-teams": {
        # no file of teams; what is sold of the broker is there
        *("Budgets, the fullest first", "Used, allowed and stranded", "Used part of budgets", "Fairness over brokers"),
        *("Produced, by team", "Fetched, by team", "Request time, by team", "Controller mutations, by team"),
    },
    "quotascope-exporter": {
        # limits that are right, no configuration file, no certificate, no discovery, no push
        *("Configuration can be used", "Failed discoveries of brokers", "Time until certificates expire, by file"),
        *("Nodes found, by discovery", "Pushes, by outcome"),
        "Utilization reported differently",
    },
}
"""Panels that are empty, by dashboard. The one of Spark jobs has none that is not."""


MARKS: Final = {"paris request_percentage", "rome request_percentage"}
EPISODES: Final[Mapping[str, set[str]]] = {
    "quotascope-overview": {"paris clients", "rome clients"},
    ENTITY: {"paris produce alice app", "rome produce alice app"},
}
"""Marks of episodes by dashboard: for all clients of a cluster together, or for each quota type of a client."""


@pytest.fixture(scope="module")
def views(prometheus: Prometheus) -> Mapping[str, View]:
    view = View(prometheus=f"http://{prometheus.address}", start=NOW - 3600, end=NOW, scrape_seconds=SCRAPE_SECONDS)
    demo = replace(view, start=DEMO_START, end=DEMO_START + DEMO_SECONDS, scrape_seconds=DEMO_SCRAPE_SECONDS)
    nothing = replace(view, start=NOTHING_AT - 3600, end=NOTHING_AT)
    return {"two clusters": view, "demo": demo, "nothing": nothing}


@pytest.mark.parametrize("data", CHOSEN)
@pytest.mark.parametrize("uid", BOARDS)
def test_a_dashboard_is_drawn_without_fault(uid: str, data: str, views: Mapping[str, View], drawer: Drawing) -> None:
    """A dashboard has no error, cut text, incomplete link or legend, and only panels with a reason are empty."""
    chosen = CHOSEN[data] if uid == ENTITY else {}
    drawn = drawer.draw(BOARDS[uid], replace(views[data], variables=chosen))
    assert drawn.faults(BOARDS) == []
    panels = {panel["title"] for panel in drawn.report["panels"]}
    assert panels == {panel["title"] for panel in panels_of(BOARDS[uid]) if panel["type"] != "row"}
    stats = [panel for panel in drawn.report["panels"] if panel["type"] == "stat"]
    match data:
        case "two clusters":
            assert drawn.empty() == set()
            throttled = EPISODES.get(uid, set())
            assert {*drawn.report["marks"]} == MARKS | throttled
            spans = [end - begin for text, begin, end in drawn.report["regions"] if text in throttled]
            assert any(spans) is bool(throttled)
            assert len(drawn.report["painted"]) == (
                2 if throttled else 1
            )  # a color for limits that changed, one for episodes
            assert all(choice["options"] for choice in drawn.choices())
        case "demo":
            jobs = panels if uid == "quotascope-spark" else set()
            assert drawn.empty() == NOT_IN_THE_DEMO.get(uid, jobs)
        case _:
            empty_panels = (panel for panel in drawn.report["panels"] if panel not in stats)
            assert drawn.empty() == {panel["title"] for panel in empty_panels}
            for stat in stats:
                assert stat["text"].splitlines()[1:] == [stat["noValue"]]
            assert [choice["options"] for choice in drawn.choices()] == [[] for _ in drawn.choices()]


@pytest.mark.parametrize("board", [ENTITY, "quotascope-mutations"])
def test_the_heading_says_that_a_name_has_a_backtick(board: str, views: Mapping[str, View], drawer: Drawing) -> None:
    """The heading warns of a backtick, whose queries Prometheus refuses, and not of other names."""
    for client_id, is_refused in (("a`b", True), ('a"b\\c', False)):
        drawn = drawer.draw(
            BOARDS[board], replace(views["two clusters"], variables={"user": "alice", "client_id": client_id})
        )
        note = next(variable for variable in drawn.report["variables"] if variable["name"] == "backtick")
        assert note["text"].startswith(": Grafana cannot ask for a name with a backtick") is is_refused
        assert any("parse error" in fault for fault in drawn.faults(BOARDS)) is is_refused


def _first(board: Json, title: str) -> Json:
    return next(panel for panel in panels_of(board) if panel["title"] == title and panel["type"] != "row")


def test_faults_are_found(views: Mapping[str, View], drawer: Drawing) -> None:
    """A dashboard with a fault of each kind has all of them reported, and the next dashboard is drawn all the same."""
    uid = "quotascope-overview"
    broken = copy.deepcopy(BOARDS[uid])
    changes = _first(broken, "Throttled users and client-ids")
    waiting, refused = _first(broken, "Connections waiting"), _first(broken, "Refused (error 89)")
    throttled, top = _first(broken, "Throttled now, by which rule"), _first(broken, "Fetch: most on one broker")
    changes["fieldConfig"]["defaults"]["unit"] = "nosuchunit"
    changes["targets"][0]["legendFormat"] = "{{quota_type}}"
    _first(broken, "Above 90% of the limit")["options"]["reduceOptions"] = 7
    _first(broken, "Sources down")["gridPos"]["h"] = 3
    waiting["links"][0]["url"] = "/d/quotascope-nowhere?${datasource:queryparam}"
    refused["links"][0]["url"] += "&var-broker=${nosuch}"
    refused["targets"][0]["expr"] = "sum("
    for panel, column, width in (throttled, "Rule", 40), (top, "User", 900):
        override = next(
            candidate for candidate in panel["fieldConfig"]["overrides"] if candidate["matcher"]["options"] == column
        )
        override["properties"].append({"id": "custom.width", "value": width})
    _first(broken, "Throttle time")["targets"][0]["expr"] = "no_such_metric"
    _first(broken, "Longest delay")["type"] = "speedometer"
    _first(broken, "Closest to the limit, not throttled yet")["options"]["sortBy"][0]["displayName"] = "Nosuch"
    broken["templating"]["list"][1]["query"] = "label_values(sum(, cluster)"
    broken["templating"]["list"][2]["query"] = "query_result(sum()"
    broken["annotations"]["list"][0]["expr"] = "sum("

    drawn = drawer.draw(broken, views["two clusters"])
    kinds = {
        "script: [": "TypeError",
        "marks: ": "failed",
        "values of a variable: ": "label/cluster/values sum(: ",
        "variable team: ": "parse error",
        "Closest to the limit, not throttled yet: not sorted by Nosuch": "",
        "Throttled users and client-ids: unknown unit": "",
        "Throttled users and client-ids: legend without the cluster": "",
        "Connections waiting: link to no dashboard": "nowhere",
        "Refused (error 89): link with a variable left": "nosuch",
        "Refused (error 89): ": "parse error",
        "Throttled now, by which rule: cut: ": "alice",
        "Fetch: most on one broker: cut: columns": "",
        "Sources down: cut: ": "too small",
        "Longest delay: ": "speedometer",
    }
    faults = drawn.faults(BOARDS)
    missed = [
        start for start, text in kinds.items() if not any(fault.startswith(start) and text in fault for fault in faults)
    ]
    assert missed == [], faults
    assert "Throttle time" in drawn.empty()
    assert drawer.draw(BOARDS[uid], views["demo"]).complaints == []
