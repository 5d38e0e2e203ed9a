"""The limit that would throttle for 1 % of the active time, on hours of a real Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.dashboards.boards import panels
from tests.dashboards.stored import NOW, started
from tools.demo_stack import fill
from tools.pictures.prometheus import Prometheus as Asked

from quotascope.dashboards.scope import Scope

SECONDS: Final = 2 * 3600
SCRAPE_SECONDS: Final = 10
TITLE: Final = ("entity", "table Limits of bytes, and what would do")


def usage_of(client: str) -> Callable[[int], float]:
    """Usage in bytes/s by the number of the scrape: half of the time nothing, then mostly 100, and now and then 900."""
    often = {"rarely": 200, "often": 50, "idle": 0}[client]
    return lambda scrape: 0.0 if scrape % 2 or not often else 900.0 if scrape // 2 % often == 0 else 100.0


def samples() -> Iterator[str]:
    """Yield two brokers: on the second, clients use half as much; the client `often` is throttled for a quarter."""
    lines = []
    for client in ("rarely", "often", "idle"):
        for broker, factor in (("1", 1.0), ("2", 0.5)):
            labels = f'cluster="paris",user="{client}",client_id="",broker="{broker}"'
            for scrape in range(SECONDS // SCRAPE_SECONDS):
                time = NOW - SECONDS + (scrape + 1) * SCRAPE_SECONDS - 1
                usage = factor * usage_of(client)(scrape)
                throttle = 2.0 if client == "often" and broker == "1" and scrape % 4 == 0 else 0.0
                lines += [
                    f"kafka_quota_produce_bytes_per_second{{{labels}}} {usage} {time}\n",
                    f'kafka_quota_throttle_time_seconds{{quota_type="produce",{labels}}} {throttle} {time}\n',
                ]
    # OpenMetrics has the samples of a family together
    yield from sorted(lines, key=lambda line: line.partition(" ")[0])
    yield "# EOF\n"


@pytest.mark.real
def test_one_percent_of_the_active_time(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Half of a percent above a limit is allowed, two percent are not; idle time and the other broker do not count."""
    fill(tmp_path, samples())
    targets = panels(Scope())[TITLE]["targets"]
    with started(tmp_path) as prometheus:
        for client, expected, throttled in (("rarely", 100.0, 0.0), ("often", 900.0, 0.25), ("idle", None, 0.0)):
            asked = Asked(f"http://{prometheus.address}", NOW, SECONDS // 60, {"cluster": "paris", "user": client})
            answers = [asked.now(target["expr"]) for target in targets]
            assert asked.refused == []
            usage, limit, needed, share = ([float(series["value"][1]) for series in answer] for answer in answers)
            with subtests.test(msg=client):
                assert (len(usage), limit) == (1, [])
                assert needed == ([] if expected is None else [pytest.approx(expected)])
                assert share == [pytest.approx(throttled, abs=0.01)]
                assert {series["metric"]["quota_type"] for answer in answers for series in answer} == {"produce"}
