from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.installed import ROOT, Installed, closure
from tests.spark_listener.recordings import VERSIONS, log_of

DRIVER = """
import sys
from pathlib import Path
from quotascope.spark_listener import attach, attaching, run
from quotascope.spark_listener.event_log import EventLog
from quotascope.spark_listener.exposition import start_reporting
from quotascope.spark_listener.job import Job, write_summary
from quotascope.spark_listener.settings import resolve
from quotascope.spark_listener.sources import bus, callbacks, choice, event_log, pull, streaming
from quotascope.spark_listener.task.py_files import write_py_files

job = Job("app")
with EventLog(Path(sys.argv[1])) as log:
    log.feed(job)
assert job.snapshot().events > 10
settings, _ = resolve({"spark.quotascope.otlp.endpoint": "http://127.0.0.1:9"}, {})
reporting = start_reporting(settings, {"spark.driver.host": "127.0.0.1"}, lambda: [job.snapshot()], app_id="app-1")
assert reporting.url
reporting.close()
write_summary(job.snapshot(), Path(sys.argv[2], "summary.json"))
write_py_files(Path(sys.argv[2], "tasks.zip"))
print(*reporting.problems)
"""


SMALL = tomllib.loads((ROOT / "packaging/spark/pyproject.toml").read_text())["project"]


@pytest.mark.slow
def test_driver_needs_what_its_distribution_installs(tmp_path: Path) -> None:
    """
    A listener with its page and sources imports nothing of the exporter, the command line or their libraries.

    OTLP names its extra.
    """
    rooms = ("clients", "metrics", "pages", "spark_listener")
    work = tmp_path / "work"
    work.mkdir()
    process = Installed(tmp_path, SMALL["dependencies"], rooms).run(DRIVER, log_of(VERSIONS[0], "plain"), work)
    assert process.returncode == 0, process.stderr
    assert process.stdout == (
        "metrics are not pushed: this needs OpenTelemetry's packages; in a clone of quotascope: "
        "pip install '.[spark-otlp]'\n"
    )


def test_what_the_distribution_declares() -> None:
    """
    The distribution needs no web server, no command line, and no minor version of OpenTelemetry.

    A driver shares the job's environment.
    """
    assert closure(SMALL["dependencies"]) == {"librt", "orjson", "prometheus-client"}
    otlp = [
        requirement
        for requirement in SMALL["optional-dependencies"]["spark-otlp"]
        if requirement.startswith("opentelemetry")
    ]
    assert otlp
    assert all(requirement.endswith(">=1.35,<2") for requirement in otlp)
