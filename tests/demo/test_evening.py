"""
A whole evening of the demo on a clock of its own: which alerts fire in Prometheus.

Tests/dashboards/test_drawn.py looks at the panels.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml
from tools.demo_stack import scrapes, usual

from quotascope.alerts import Site
from quotascope.alerts.files import rule_files
from quotascope.alerts.settings import Profile
from quotascope.demo import CAST

pytestmark = pytest.mark.real

SCRAPE_SECONDS: Final = 15
MINUTES: Final = 33
HISTORY_MINUTES: Final = 120


PERSISTENT: Final = {"FetchThrottled", "MutationThrottled", "ProduceThrottled", "RequestThrottled"}
"""Alerts on clients that are always throttled, some of them by a few hundredths of a second each time."""
FIRING: Final = {
    1: set[str](),
    5: set[str](),
    8: PERSISTENT,
    12: {"ThrottleSpike"} | PERSISTENT,
    18: {"ThrottleSpike"} | PERSISTENT,
    24: {"RefusalsRising"} | PERSISTENT,
    33: PERSISTENT,
}
"""
Firing alerts by minute.

None is at the edge of a minute: promtool evaluates the groups of an instant in any order, and an alert may be a step
late.
"""


def test_what_is_meant_to_fire_fires_and_nothing_else(tmp_path: Path) -> None:
    """
    The page fires in the spike, the warning on refusals, alerts on single clients of each quota.

    No other alert fires in between.
    """

    async def seen() -> list[dict[str, float]]:
        return [scrape async for scrape in scrapes(CAST, 60 * MINUTES, SCRAPE_SECONDS)]

    evening = asyncio.run(seen())
    day = usual()  # what was recorded before
    steps = HISTORY_MINUTES * 60 // SCRAPE_SECONDS
    names = dict.fromkeys(name for scrape in evening for name in scrape)
    series = [
        {"series": name, "values": f"{value}+0x{steps - 2}"} for name, value in day.items() if name not in names
    ] + [
        {
            "series": name,
            "values": " ".join((f"_x{steps + 1}", *(str(scrape.get(name, "_")) for scrape in evening))),
        }
        for name in names
    ]
    looks = [(HISTORY_MINUTES + minute, 'ALERTS{alertstate="firing"}', fires) for minute, fires in FIRING.items()]
    ever = f'last_over_time(ALERTS{{alertstate="firing"}}[{MINUTES - 1}m])'
    looks.append((HISTORY_MINUTES + MINUTES, ever, set().union(*FIRING.values())))
    rules = rule_files(Site(profile=Profile.ALL))
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
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
