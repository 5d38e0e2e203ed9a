"""The dashboards as Grafana's own components show them: of two clusters with all that there can be, of the demo, and of nothing."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.dashboards.boards import panels_of
from tests.dashboards.drawn import Drawing, View
from tests.dashboards.stored import DEMO_SCRAPE_SECONDS, DEMO_SECONDS, DEMO_START, NOTHING_AT, NOW, SCRAPE_SECONDS
from tests.dashboards.test_answers import BOARDS
from tests.integration.prometheus import Prometheus

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
        *("New connections per second, by address", "Remote storage"),
        *("New connections per second, by broker", "Throttled replication"),
        *("New connections per second, by listener", "Wait for the next connection"),
    },
    "quotascope-shadow": {
        # no shadow; the lines of what is in force are there
        *("Shadows", "Clients nearest to the limits of a shadow")
    },
    "quotascope-exporter": {
        # limits that are right, no configuration file, no discovery, no push
        *("Configuration can be used", "Failed discoveries of brokers"),
        *("Nodes found, by discovery", "Pushes, by outcome"),
        "Utilization that brokers report differently",
    },
}
"""Panels that are empty, by dashboard. The one of Spark jobs has none that is not."""


MARKS: Final = {"paris request_percentage", "rome request_percentage"}
EPISODES: Final[Mapping[str, set[str]]] = {
    "quotascope-overview": {"paris clients", "rome clients"},
    ENTITY: {"paris produce alice app", "rome produce alice app"},
}
"""By dashboard: of two clusters, one for each quota type of a client, or for all clients together, however many are throttled."""


@pytest.fixture(scope="module")
def views(prometheus: Prometheus) -> Mapping[str, View]:
    known = View(prometheus=f"http://{prometheus.address}", start=NOW - 3600, end=NOW, scrape_seconds=SCRAPE_SECONDS)
    demo = replace(known, start=DEMO_START, end=DEMO_START + DEMO_SECONDS, scrape_seconds=DEMO_SCRAPE_SECONDS)
    nothing = replace(known, start=NOTHING_AT - 3600, end=NOTHING_AT)
    return {"two clusters": known, "demo": demo, "nothing": nothing}


@pytest.mark.parametrize("data", CHOSEN)
@pytest.mark.parametrize("uid", BOARDS)
def test_a_dashboard_is_drawn_without_fault(uid: str, data: str, views: Mapping[str, View], drawer: Drawing) -> None:
    """No error, nothing cut at 1600 pixels, each link and legend complete, and no panel empty but those that have a reason."""
    chosen = CHOSEN[data] if uid == ENTITY else {}
    drawn = drawer.draw(BOARDS[uid], replace(views[data], variables=chosen))
    assert drawn.faults(BOARDS) == []
    panels = {each["title"] for each in drawn.report["panels"]}
    assert panels == {each["title"] for each in panels_of(BOARDS[uid]) if each["type"] != "row"}
    stats = [each for each in drawn.report["panels"] if each["type"] == "stat"]
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
            assert all(each["options"] for each in drawn.choices())
        case "demo":
            jobs = panels if uid == "quotascope-spark" else set()
            assert drawn.empty() == NOT_IN_THE_DEMO.get(uid, jobs)
        case _:
            rest = (each for each in drawn.report["panels"] if each not in stats)
            assert drawn.empty() == {each["title"] for each in rest}
            for each in stats:
                assert each["text"].splitlines()[1:] == [each["noValue"]]
            assert [each["options"] for each in drawn.choices()] == [[] for _ in drawn.choices()]


def _first(board: Json, title: str) -> Json:
    return next(each for each in panels_of(board) if each["title"] == title and each["type"] != "row")


def test_faults_are_found(views: Mapping[str, View], drawer: Drawing) -> None:
    """One of each kind on one dashboard: the check can fail, and the next dashboard is drawn all the same."""
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
        override = next(each for each in panel["fieldConfig"]["overrides"] if each["matcher"]["options"] == column)
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
        "variable owner: ": "parse error",
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
    found = drawn.faults(BOARDS)
    missed = [
        start for start, text in kinds.items() if not any(each.startswith(start) and text in each for each in found)
    ]
    assert missed == [], found
    assert "Throttle time" in drawn.empty()
    assert drawer.draw(BOARDS[uid], views["demo"]).complaints == []
