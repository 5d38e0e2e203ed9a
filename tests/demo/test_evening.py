"""A whole evening of the demo on a clock of its own: which alerts fire in Prometheus; tests/dashboards/test_drawn.py looks at the panels."""

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
from quotascope.demo import CAST

pytestmark = pytest.mark.real

SCRAPE_SECONDS: Final = 15
MINUTES: Final = 33
HISTORY_MINUTES: Final = 120


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


def test_what_is_meant_to_fire_fires_and_nothing_else(tmp_path: Path) -> None:
    """The page in the spike, the warning on refusals, two alerts on single clients; none of any other kind in between."""

    async def seen() -> list[dict[str, float]]:
        return [each async for each in scrapes(CAST, 60 * MINUTES, SCRAPE_SECONDS)]

    evening = asyncio.run(seen())
    day = usual()  # what was recorded before
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
