"""A Prometheus with the data of the tests: two known clusters, an evening of the demo, and times without data."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.alerts.expressions import ONE_TEAM
from tests.integration.eventually import eventually
from tests.integration.prometheus import Prometheus
from tools.demo_stack import scrapes

from quotascope.alerts.render import records
from quotascope.demo import CAST

KNOWN: Final = Path(__file__).parent / "known"
NOW: Final = 1_800_000_000
SCRAPE_SECONDS: Final = 60
HISTORY_SECONDS: Final = 7 * 3600
"""The trend of six hours is seen whole."""
PLACES: Final = (
    ('cluster="paris",instance="x:1"', 1),
    ('cluster="paris",instance="x:2"', 1),
    ('cluster="rome",instance="y:1"', 7),
)
OF_JOBS: Final = (("", 1),)
_MUTATION_RULES: Final = 'kafka_quota_rules{quota_key="controller_mutation_rate"}'
ELSEWHERE: Final[dict[str, dict[str, float]]] = {
    "oslo": {
        "quotascope_build_info": 1,
        'quotascope_source_up{source="broker-1"}': 1,
        "quotascope_limits_age_seconds": 5,
        _MUTATION_RULES: 0,
    },
    "turku": {"quotascope_build_info": 1, 'quotascope_source_up{source="broker-1"}': 1},
    "bergen": {
        "quotascope_build_info": 1,
        'quotascope_source_up{source="broker-1"}': 0,
        "quotascope_limits_age_seconds": 5,
        _MUTATION_RULES: 1,
    },
    "kiel": {"quotascope_build_info": 1},
}
"""Clusters without a client: healthy, without limits, with limits only, and with an exporter that ended an hour ago."""
ENDED: Final = {"kiel": NOW - 3600}
DEMO_START: Final = NOW + 30 * 24 * 3600
DEMO_SCRAPE_SECONDS: Final = 15
DEMO_SECONDS: Final = 15 * 60
NOTHING_AT: Final = NOW - 30 * 24 * 3600
"""When there is no sample of anything."""


def samples() -> Iterator[str]:
    """
    Yield the data as OpenMetrics: two exporters read the cluster paris; rome, which is not chosen, has all times 7.

    Jobs have no cluster. A growing gauge has its value at `NOW`; a counter grows from its value.
    """
    for line in (KNOWN / "series.txt").read_text().splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)(?: (\S+))?", line)
        if match is None:
            assert not line or line.startswith("#"), line
            continue
        name, labels, value, growth = match.groups()
        for place, factor in OF_JOBS if name.startswith("spark_") else PLACES:
            inner = ",".join(filter(None, (labels, place)))
            start = NOW - HISTORY_SECONDS if name.endswith("_total") else NOW
            for time in range(NOW - HISTORY_SECONDS, NOW + 1, SCRAPE_SECONDS):
                number = factor * (float(value) + float(growth or 0) * (time - start))
                yield f"{name}{{{inner}}} {number!r} {time}\n"
    for cluster, series in ELSEWHERE.items():
        for name, number in series.items():
            family, _, labels = name.partition("{")
            inner = ",".join(filter(None, (f'cluster="{cluster}"', labels.rstrip("}"))))
            end = ENDED.get(cluster, NOW)
            for time in range(NOW - HISTORY_SECONDS, end + 1, SCRAPE_SECONDS):
                yield f"{family}{{{inner}}} {number} {time}\n"
    yield "# EOF\n"


def recorded(prometheus: Prometheus) -> Iterator[str]:
    """Yield the results of the recording rules on the data, as OpenMetrics; rules see series recorded before."""
    start, step = NOW - HISTORY_SECONDS, SCRAPE_SECONDS
    for record in records(ONE_TEAM):
        answer = prometheus.get("query_range", query=record["expr"], start=f"{start}", end=f"{NOW}", step=f"{step}")
        for series in answer["result"]:
            labels = ",".join(f'{name}="{value}"' for name, value in series["metric"].items() if name != "__name__")
            for time, value in series["values"]:
                yield f"{record['record']}{{{labels}}} {value} {time}\n"
    yield "# EOF\n"


@contextmanager
def started(folder: Path, *flags: str) -> Iterator[Prometheus]:
    """A Prometheus that has data of any age and scrapes nothing."""
    prometheus = Prometheus(folder, {}, "--storage.tsdb.retention.time=100y", *flags)
    try:
        eventually(lambda: prometheus.query("vector(1)"))
        yield prometheus
    finally:
        prometheus.child.end()


def demo(seconds: int) -> Iterator[str]:
    """Yield the samples that Prometheus scrapes from the demo in `seconds` from `DEMO_START`, as OpenMetrics."""
    for number, scrape in enumerate(asyncio.run(_scraped(seconds)), 1):
        time = DEMO_START + number * DEMO_SCRAPE_SECONDS
        for series, value in scrape.items():
            yield f"{series} {value!r} {time}\n"
    yield "# EOF\n"


async def _scraped(seconds: int) -> list[dict[str, float]]:
    samples_of_scrapes = scrapes(CAST, seconds, DEMO_SCRAPE_SECONDS, DEMO_START * 1000)
    return [scrape async for scrape in samples_of_scrapes]
