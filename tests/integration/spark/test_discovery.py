"""A real Prometheus finds drivers by their entries, and forgets them."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.integration.eventually import eventually
from tests.integration.prometheus import Prometheus
from tests.spark_listener.exposition.jobs import report_waiting

from quotascope.spark_listener.exposition.discovery import DEAD_AFTER_SECONDS

pytestmark = pytest.mark.real

DRIVER = """
import sys, time
from tests.spark_listener.exposition.jobs import report_waiting
report_waiting(sys.argv[1], "app-killed")
print("reports", flush=True)
time.sleep(600)
"""


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    (tmp_path / "entries").mkdir()
    files = {"files": [str(tmp_path / "entries/*.json")]}
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "spark", "file_sd_configs": [files]}],
    }
    prometheus = Prometheus(tmp_path / "prometheus", config)
    yield prometheus
    prometheus.child.end()


def test_drivers_come_and_go(prometheus: Prometheus, tmp_path: Path) -> None:
    """
    A driver is a target from its beginning to its end, and its series have its id and their labels.

    A killed driver is a target that fails until the next driver removes its old file.
    """
    folder = tmp_path / "entries"
    ended = report_waiting(str(folder), "app-ended")
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(folder)], stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "reports\n"

            def both() -> None:
                _healthy(prometheus, {"app-ended": "up", "app-killed": "up"})
                series = prometheus.query("spark_listener_events_total")
                apps = {(labels["app_id"], labels["app"]) for labels, _ in series}
                assert apps == {("app-ended", "nightly"), ("app-killed", "nightly")}

            eventually(both)
            ended.close()
            eventually(lambda: _healthy(prometheus, {"app-killed": "up"}))
        finally:
            driver.kill()
    eventually(lambda: _healthy(prometheus, {"app-killed": "down"}))
    (entry,) = folder.iterdir()
    old = time.time() - DEAD_AFTER_SECONDS - 60
    os.utime(entry, (old, old))
    report_waiting(str(folder), "app-next").close()
    eventually(lambda: _healthy(prometheus, {}))


def _healthy(prometheus: Prometheus, health: Mapping[str, str]) -> None:
    targets = prometheus.get("targets")["activeTargets"]
    assert {target["labels"]["app_id"]: target["health"] for target in targets} == health
