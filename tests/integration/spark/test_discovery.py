"""A real Prometheus finds drivers by their entries, and forgets them."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.eventually import eventually
from tests.integration.prometheus import Prometheus
from tests.spark_listener.exposition.jobs import reported

from quotascope.spark_listener.exposition import Reporting
from quotascope.spark_listener.exposition.discovery import DEAD_AFTER_SECONDS
from quotascope.spark_listener.job import Job

pytestmark = pytest.mark.real

DRIVER = """
import sys, time
from tests.integration.spark.test_discovery import report
report(sys.argv[1], "app-killed")
print("reports", flush=True)
time.sleep(600)
"""


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    """One that looks for drivers in a folder."""
    (tmp_path / "entries").mkdir()
    files = {"files": [str(tmp_path / "entries/*.json")]}
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "spark", "file_sd_configs": [files]}],
    }
    prometheus = Prometheus(tmp_path / "prometheus", config)
    yield prometheus
    prometheus.child.end()


def report(folder: str, app_id: str) -> Reporting:
    """Report a job that has done nothing yet."""
    properties = {
        "spark.app.name": "nightly",
        "spark.driver.host": "127.0.0.1",
        "spark.quotascope.fileSd.path": f"{folder}/{{app_id}}.json",
    }
    job = Job("nightly")
    return reported(properties, lambda: [job.snapshot()], app_id)


def targets(prometheus: Prometheus) -> dict[str, Mapping[str, Any]]:
    """The targets by application."""
    found = prometheus.get("targets")["activeTargets"]
    return {target["labels"]["app_id"]: target for target in found}


def test_drivers_come_and_go(prometheus: Prometheus, tmp_path: Path) -> None:
    """Each is a target from its beginning to its end; its series have its id, and the labels that they had."""
    drivers = [report(str(tmp_path / "entries"), f"app-{number}") for number in (1, 2)]

    def both() -> None:
        found = targets(prometheus)
        assert {app: target["health"] for app, target in found.items()} == {
            "app-1": "up",
            "app-2": "up",
        }
        series = prometheus.query("spark_listener_events_total")
        assert {labels["app_id"] for labels, _ in series} == {"app-1", "app-2"}
        assert {labels["app"] for labels, _ in series} == {"nightly"}

    eventually(both)
    drivers[0].close()
    eventually(lambda: _only(prometheus, "app-2"))
    drivers[1].close()
    eventually(lambda: _only(prometheus))


def _only(prometheus: Prometheus, *apps: str) -> None:
    assert targets(prometheus).keys() == {*apps}


def test_a_killed_driver_is_down_until_another_clears_up(prometheus: Prometheus, tmp_path: Path) -> None:
    """Who is killed cannot say so: its target fails, its file ages, and the next driver removes it."""
    folder = tmp_path / "entries"
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(folder)], stdout=subprocess.PIPE, text=True)
    with driver:
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "reports\n"
            eventually(lambda: _health(prometheus, "up"))
        finally:
            driver.kill()
    eventually(lambda: _health(prometheus, "down"))
    (entry,) = folder.iterdir()
    old = time.time() - DEAD_AFTER_SECONDS - 60
    os.utime(entry, (old, old))
    report(str(folder), "app-next").close()
    eventually(lambda: _only(prometheus))


def _health(prometheus: Prometheus, health: str) -> None:
    found = {app: target["health"] for app, target in targets(prometheus).items()}
    assert found == {"app-killed": health}
