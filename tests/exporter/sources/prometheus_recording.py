"""
Answers of a real Prometheus that scraped the captured pages: `python -m tests.exporter.sources.prometheus_recording`.

It scrapes three brokers, one of them twice as an HA pair does, an exporter of ours, and a broker of another cluster.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.exporter.recorded import CAPTURES
from tests.integration.eventually import eventually
from tests.integration.prometheus import Prometheus, running
from tests.prometheus.releases import RELEASES, Release
from tests.servers import Handler, served

from quotascope.exporter.sources.peer import HttpTarget
from quotascope.exporter.sources.prometheus_api import PrometheusApi
from quotascope.exporter.sources.prometheus_live import LivePrometheus
from quotascope.exporter.sources.prometheus_nodes import Grouping

FOLDER: Final = CAPTURES / "prometheus"
GOLDEN: Final = Path(__file__).parents[1] / "exposition" / "golden"
PAGES: Final[Mapping[str, bytes]] = {
    "broker-1:9404": (CAPTURES / "dialects" / "kafka_2_0_0.txt").read_bytes(),
    "broker-2:9404": (CAPTURES / "dialects" / "jmx_default_lowercase.txt").read_bytes().replace(b'id="1"', b'id="2"'),
    "broker-3:9404": (CAPTURES / "dialects" / "confluent.txt").read_bytes(),
    "quotascope:9749": (GOLDEN / "combined_throttled.txt").read_bytes(),
    "west-1:9404": (CAPTURES / "rules" / "throttled.txt").read_bytes(),
}
"""The page of each instance."""
_SCRAPES: Final = 4


class PageServer(ThreadingHTTPServer):
    """Answers each page at the path of its instance."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self.pages = pages
        super().__init__(("127.0.0.1", 0), _PageHandler)

    def job(self, name: str, instances: Sequence[str], **labels: str) -> dict[str, Any]:
        """Return the job that scrapes these instances under their names."""
        relabel = [
            {"source_labels": ["instance"], "target_label": "__metrics_path__", "replacement": "/$1"},
            {"target_label": "__address__", "replacement": f"127.0.0.1:{self.server_port}"},
        ]
        targets = [{"targets": ["placeholder"], "labels": {"instance": name, **labels}} for name in instances]
        return {"job_name": name, "static_configs": targets, "relabel_configs": relabel}


class _PageHandler(Handler):
    server: PageServer

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        page = self.server.pages[self.path.partition("?")[0].removeprefix("/")]
        self.answer(200, page, Content_Type="text/plain; version=0.0.4")


def jobs_of(server: PageServer) -> list[dict[str, Any]]:
    """Return the jobs of the recording."""
    brokers = server.job("kafka", ["broker-1:9404", "broker-2:9404", "broker-3:9404", "quotascope:9749"])
    brokers["static_configs"] += server.job("kafka", ["broker-1:9404"], prometheus_replica="b")["static_configs"]
    return [brokers, server.job("west", ["west-1:9404"])]


def record(release: Release) -> None:
    """Write the answers of a release."""
    with served(PageServer(PAGES)) as server, tempfile.TemporaryDirectory() as folder:
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": jobs_of(server),
        }
        with running(Path(folder) / "prometheus", config, release) as prometheus:
            eventually(lambda: _scraped(prometheus))
            answers = {name: asyncio.run(_ask(prometheus, selector)) for name, selector in SELECTORS.items()}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{release}.json").write_text(json.dumps(answers, indent=0, ensure_ascii=False) + "\n")


SELECTORS: Final = {"kafka": 'job="kafka"', "all": ""}


def _scraped(prometheus: Prometheus) -> None:
    counts = [value for _, value in prometheus.query("count_over_time(up[1m])")]
    assert len(counts) == len(PAGES) + 1
    assert min(counts) >= _SCRAPES


class _RecordingApi(PrometheusApi):
    """Keeps the data of each answer."""

    def __init__(self, url: str) -> None:
        super().__init__(HttpTarget(url=url))
        self.answers: dict[str, Any] = {}

    async def _ask(self, path: str, parameters: Mapping[str, str], *, post: bool = True) -> tuple[Any, tuple[str, ...]]:
        data, warnings = await super()._ask(path, parameters, post=post)
        self.answers[kind_of(path, parameters)] = data
        return data, warnings


async def _ask(prometheus: Prometheus, selector: str) -> dict[str, Any]:
    """Return the data of each answer that a live source asks for."""
    api = _RecordingApi(f"http://{prometheus.address}")
    live = LivePrometheus(api, Grouping(), selector)
    await live.reading()
    await live.close()
    answers = api.answers
    names = {series["metric"]["__name__"] for series in answers["vector"]["result"]}
    answers["metadata"] = {name: entries for name, entries in answers["metadata"].items() if name in names}
    answers["names"] = [name for name in answers["names"] if name in names or name in {"up", "jvm_info"}]
    return answers


def kind_of(path: str, parameters: Mapping[str, str]) -> str:
    """Return which of the answers of a live source is asked for."""
    if path != "query":
        return "names" if "label" in path else path
    query = parameters["query"]
    return "now" if query == "time()" else "beats" if query.endswith("]") else "vector"


if __name__ == "__main__":
    for chosen in RELEASES:
        record(chosen)
    sys.exit(0)
