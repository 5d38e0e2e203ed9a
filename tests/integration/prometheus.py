"""A real Prometheus on the loopback interface."""

import json
import shutil
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator, Mapping
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
    A Prometheus that scrapes each target every two seconds.

    Args:
        folder: For its configuration, data and log.
        targets: Address by job.
        apart: A job whose metric names begin with its own name, so that queries do not meet it beside another.

    """

    def __init__(self, folder: Path, targets: Mapping[str, str], apart: str) -> None:
        program = shutil.which("prometheus")
        if program is None:
            raise PrometheusMissing("no `prometheus`: run `make services`")
        folder.mkdir(parents=True)
        self.address = f"127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(_config(targets, apart)))
        command = [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
        ]
        self.child = Child(command, folder / "prometheus.log")

    def query(self, promql: str) -> list[tuple[Mapping[str, str], float]]:
        """
        The vector that an instant query gives: labels and value of each series.

        A label that is not there reads as empty, which is the same to Prometheus.
        """
        answer = self._get(f"/api/v1/query?{urllib.parse.urlencode({'query': promql})}")
        assert answer["status"] == "success", answer
        assert answer["data"]["resultType"] == "vector", answer
        return [
            (defaultdict(str, series["metric"]), float(series["value"][1]))
            for series in answer["data"]["result"]
        ]

    def targets(self) -> dict[str, dict[str, Any]]:
        """How scraping goes, by job."""
        active = self._get("/api/v1/targets")["data"]["activeTargets"]
        return {target["labels"]["job"]: target for target in active}

    def _get(self, path: str) -> Any:
        self.child.must_run()
        answer = web.ask(f"http://{self.address}{path}")
        assert answer.status == 200, answer.text
        return json.loads(answer.body)


@contextmanager
def scraping(
    folder: Path, targets: Mapping[str, str], *, apart: str
) -> Iterator[Prometheus]:
    """A Prometheus for the length of a `with` block, after its first scrape of every target."""
    prometheus = Prometheus(folder, targets, apart)

    def scraped() -> None:
        health = {job: target["health"] for job, target in prometheus.targets().items()}
        assert health.keys() == targets.keys()
        assert "unknown" not in health.values()

    try:
        eventually(scraped)
        yield prometheus
    finally:
        prometheus.child.end()


def _config(targets: Mapping[str, str], apart: str) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [
            {
                "job_name": job,
                "static_configs": [{"targets": [address]}],
                "metric_relabel_configs": [_prefix(job)] if job == apart else [],
            }
            for job, address in targets.items()
        ],
    }


def _prefix(text: str) -> dict[str, Any]:
    return {
        "source_labels": ["__name__"],
        "target_label": "__name__",
        "replacement": f"{text}_$1",
    }
