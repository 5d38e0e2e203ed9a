"""A real Prometheus on the loopback interface."""

import json
import shutil
import urllib.parse
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.ports import free_port

from . import web
from .child import Child
from .eventually import eventually


class PrometheusMissing(Exception):
    """Prometheus is not installed."""


class Prometheus:
    """
    A Prometheus with a configuration.

    Args:
        folder: For its configuration, data and log; there may be data in `data`.
        config: What `prometheus.yml` holds.
        flags: Further ones of its command line.
        port: Where it listens; a free one when None.

    """

    def __init__(self, folder: Path, config: Mapping[str, Any], *flags: str, port: int | None = None) -> None:
        program = shutil.which("prometheus")
        if program is None:
            raise PrometheusMissing("no `prometheus`: run `make services`")
        folder.mkdir(parents=True, exist_ok=True)
        self.address = f"127.0.0.1:{port or free_port()}"
        path = folder / "prometheus.yml"
        path.write_text(yaml.safe_dump(dict(config)))
        command = [
            program,
            f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            *flags,
        ]
        self.child = Child(command, folder / "prometheus.log")

    def query(self, promql: str) -> list[tuple[Mapping[str, str], float]]:
        """
        The vector that an instant query gives: labels and value of each series.

        A label that is not there reads as empty, which is the same to Prometheus.
        """
        data = self.get("query", query=promql)
        assert data["resultType"] == "vector", data
        return [(defaultdict(str, series["metric"]), float(series["value"][1])) for series in data["result"]]

    def targets(self) -> dict[str, dict[str, Any]]:
        """How scraping goes, by job."""
        active = self.get("targets")["activeTargets"]
        return {target["labels"]["job"]: target for target in active}

    def get(self, path: str, **parameters: str) -> Any:
        """What its API answers at a path, such as `rules`."""
        self.child.must_run()
        query = urllib.parse.urlencode(parameters)
        answer = web.ask(f"http://{self.address}/api/v1/{path}?{query}")
        assert answer.status == 200, answer.text
        return json.loads(answer.body)["data"]


@contextmanager
def scraping(
    folder: Path,
    targets: Mapping[str, str],
    *,
    apart: Container[str],
    access: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[Prometheus]:
    """
    A Prometheus that scrapes each target every two seconds, for the length of a `with` block.

    Args:
        folder: For its configuration, data and log.
        targets: Address by job.
        apart: Jobs whose metric names begin with their own name, so that queries do not meet them beside another.
        access: What more a job's configuration says, such as its scheme and password.

    """
    with running(folder, _config(targets, apart, access or {})) as prometheus:
        yield prometheus


@contextmanager
def running(folder: Path, config: Mapping[str, Any]) -> Iterator[Prometheus]:
    """A Prometheus for the length of a `with` block, after its first scrape of every job."""
    prometheus = Prometheus(folder, config)
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


def _config(
    targets: Mapping[str, str], apart: Container[str], access: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [
            {
                "job_name": job,
                "static_configs": [{"targets": [address]}],
                "metric_relabel_configs": [_prefix(job)] if job in apart else [],
                **access.get(job, {}),
            }
            for job, address in targets.items()
        ],
    }


def _prefix(text: str) -> dict[str, Any]:
    return {"source_labels": ["__name__"], "target_label": "__name__", "replacement": f"{text}_$1"}
