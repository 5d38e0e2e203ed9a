"""A whole evening of the demo on a clock of its own: which alerts fire in Prometheus, and which panels have something to show."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.dashboards.stored import NOW, started
from tests.dashboards.typescript import panels_of
from tests.integration.prometheus import Prometheus
from tools.demo_stack import earlier, fill, scrapes, usual
from tools.pictures.prometheus import Prometheus as Asked

from quotascope.alerts import Site
from quotascope.alerts.files import rule_files
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope
from quotascope.demo import CAST

pytestmark = pytest.mark.real

SCRAPE_SECONDS: Final = 15
MINUTES: Final = 33
HISTORY_MINUTES: Final = 120
Evening = Sequence[dict[str, float]]


@pytest.fixture(scope="module")
def evening() -> Evening:
    """An evening and the first minutes of the next one, as the exporter shows it."""

    async def seen() -> Evening:
        return [each async for each in scrapes(CAST, 60 * MINUTES, SCRAPE_SECONDS)]

    return asyncio.run(seen())


@pytest.fixture(scope="module")
def day() -> dict[str, float]:
    """What was recorded before."""
    return usual()


PERSISTENT: Final = {"FetchThrottled", "ProduceThrottled"}
"""On clients that are always throttled."""
FIRING: Final = {
    1: set[str](),
    7: set[str](),
    12: {"ThrottleSpike"},
    18: {"ThrottleSpike"} | PERSISTENT,
    24: {"RefusalsRising"} | PERSISTENT,
    33: PERSISTENT,
}
"""By minute."""


def test_what_is_meant_to_fire_fires_and_nothing_else(evening: Evening, day: dict[str, float], tmp_path: Path) -> None:
    """The page in the spike, the warning on refusals, two alerts on single clients; none of any other kind in between."""
    steps = HISTORY_MINUTES * 60 // SCRAPE_SECONDS
    names = dict.fromkeys(name for scrape in evening for name in scrape)
    series = [
        {"series": name, "values": f"{value}+0x{steps - 2}"} for name, value in day.items() if name not in names
    ] + [
        {
            "series": name,
            "values": " ".join((f"_x{steps + 1}", *(str(each.get(name, "_")) for each in evening))),
        }
        for name in names
    ]
    looks = [(HISTORY_MINUTES + minute, 'ALERTS{alertstate="firing"}', fires) for minute, fires in FIRING.items()]
    ever = f'last_over_time(ALERTS{{alertstate="firing"}}[{MINUTES - 1}m])'
    looks.append((HISTORY_MINUTES + MINUTES, ever, set().union(*FIRING.values())))
    rules = rule_files(Site())
    for name, text in rules.items():
        (tmp_path / name).write_text(text)
    test = {
        "interval": f"{SCRAPE_SECONDS}s",
        "input_series": series,
        "promql_expr_test": [
            {
                "eval_time": f"{minute}m",
                "expr": f"group by (alertname) ({expr})",
                "exp_samples": [{"labels": f'{{alertname="KafkaQuota{name}"}}', "value": 1} for name in fires],
            }
            for minute, expr, fires in looks
        ],
    }
    document = {"rule_files": [*rules], "evaluation_interval": "15s", "tests": [test]}
    (tmp_path / "evening.yaml").write_text(yaml.safe_dump(document))
    command = ["promtool", "test", "rules", str(tmp_path / "evening.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def prometheus(
    evening: Evening, day: dict[str, float], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A Prometheus that scraped the evening up to `NOW`."""
    folder = tmp_path_factory.mktemp("evening")
    begin = NOW - 60 * MINUTES

    def lines() -> Iterator[str]:
        for number, scrape in enumerate(evening, 1):
            for name, value in scrape.items():
                yield f"{name} {value!r} {begin + SCRAPE_SECONDS * number}\n"
        yield "# EOF\n"

    fill(folder, earlier(day, begin))
    fill(folder, lines())
    with started(folder) as prometheus:
        yield prometheus


ENTITIES: Final = (
    ("etl", "spark-nightly"),
    ("dana", "notebook"),
    ("deploy", "terraform"),
    ("", ""),
)
"""User and client-id that are chosen on the board of an entity."""
NOT_SHOWN: Final = re.compile(r"spark_kafka_|_callback_")
"""The demo has no job that reports to Prometheus, and no custom quota callback."""


@pytest.mark.parametrize("board", ["overview", "entity", "mutations"])
def test_every_panel_shows_something(prometheus: Prometheus, board: str, subtests: pytest.Subtests) -> None:
    """Each query of each panel has rows at some time of the evening, for one of the clients chosen."""
    url = f"http://{prometheus.address}"
    choices = [{"user": user, "client_id": name} for user, name in ENTITIES]
    asked = [
        Asked(url, NOW, MINUTES, {**choice, "find": "a"}, SCRAPE_SECONDS)
        for choice in (choices if board == "entity" else choices[-1:])
    ]
    panels = panels_of(grafana_dashboards(Scope())[f"quotascope-{board}"])
    for title, expr in _queries(panels):
        with subtests.test(msg=f"{title}: {expr}"):
            assert any(each.over_time(expr) for each in asked)
    assert not any(each.refused for each in asked)


def _queries(panels: Any) -> Iterator[tuple[str, str]]:
    for panel in panels:
        for target in panel.get("targets", ()):
            # a part of a sum may be missing: what is asked for alone must not
            if not NOT_SHOWN.search(target["expr"]) or "build_info" in target["expr"]:
                yield panel["title"], target["expr"]
