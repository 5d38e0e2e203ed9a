"""A real Prometheus on the loopback interface."""

import json
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.ports import free_port
from tests.prometheus.releases import OLDEST, Release

from . import web
from .child import Child
from .eventually import eventually


class Prometheus:
    """A Prometheus that keeps its configuration, data and log in a folder; there may be data in `data`."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *flags: str,
        port: int | None = None,
        release: Release = OLDEST,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = f"127.0.0.1:{port or free_port()}"
        path = folder / "prometheus.yml"
        path.write_text(yaml.safe_dump(dict(config)))
        command = [
            release.program("prometheus"),
            f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            *flags,
        ]
        self.child = Child(command, folder / "prometheus.log")

    def query(self, promql: str) -> list[tuple[Mapping[str, str], float]]:
        """
        Labels and value of each series.

        A label that is not there reads as empty, which is the same to Prometheus.
        """
        data = self.get("query", query=promql)
        assert data["resultType"] == "vector", data
        return [(defaultdict(str, series["metric"]), float(series["value"][1])) for series in data["result"]]

    def targets(self) -> dict[str, dict[str, Any]]:
        active = self.get("targets")["activeTargets"]
        return {target["labels"]["job"]: target for target in active}

    def get(self, path: str, **parameters: str) -> Any:
        """Return the answer of its API at a path, such as `rules`."""
        self.child.must_run()
        query = urllib.parse.urlencode(parameters)
        answer = web.ask(f"http://{self.address}/api/v1/{path}?{query}")
        assert answer.status == 200, answer.text
        return json.loads(answer.body)["data"]


@contextmanager
def running(folder: Path, config: Mapping[str, Any], release: Release = OLDEST) -> Iterator[Prometheus]:
    """Yield a running Prometheus, after its first scrape of every job."""
    prometheus = Prometheus(folder, config, release=release)
    jobs = {job["job_name"] for job in config["scrape_configs"]}

    def scraped() -> None:
        health = {job: target["health"] for job, target in prometheus.targets().items()}
        assert health.keys() == jobs
        assert "unknown" not in health.values()

    try:
        eventually(scraped)
        yield prometheus
    finally:
        prometheus.child.end()
