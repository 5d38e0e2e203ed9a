"""A command whose JVM the system kills, as where there is too little memory."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import COMMAND
from tests.integration.child import tether
from tests.pipeline.log_lines import CAPTURE
from tests.spark.process import variables
from tests.spark.sessions import LOCAL, QUIET
from tests.spark.versions import RUNNING

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

WAITING = """\
#!/bin/sh
touch {started}
exec cat >/dev/null  # until the JVM is gone, and with it the other end
"""


def _jvm(driver: int) -> int | None:
    """Return the Java process that a process has started, if it is there."""
    for child in Path(f"/proc/{driver}/task/{driver}/children").read_text().split():
        if Path(f"/proc/{child}/comm").read_text() == "java\n":
            return int(child)
    return None


def _kill_jvm(driver: subprocess.Popen[bytes], when: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not ((jvm := _jvm(driver.pid)) and when()):
        assert driver.poll() is None, "it ended"
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)
    os.kill(jvm, signal.SIGKILL)


@pytest.mark.parametrize("moment", ["start", "work"])
def test_jvm_is_killed(moment: str, tmp_path: Path) -> None:
    """A killed JVM is reported as an end of Spark; nothing is committed, and the same command succeeds later."""
    started, worker, usage = tmp_path / "started", tmp_path / "python", tmp_path / "usage"
    worker.write_text(WAITING.format(started=started))
    worker.chmod(0o755)
    command = [str(COMMAND), "ingest", str(CAPTURE), "--into", str(usage), "--broker", "1", "--engine", "spark"]
    confs = [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in {"spark.master": LOCAL, **QUIET}.items()]
    environ = {**variables(RUNNING, tmp_path), "PYSPARK_SUBMIT_ARGS": " ".join([*confs, "pyspark-shell"])}
    log = tmp_path / "output"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*tether(), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**environ, "PYSPARK_PYTHON": str(worker)},
        ) as driver,
    ):
        try:
            _kill_jvm(driver, started.exists if moment == "work" else lambda: True)
            code = driver.wait(100)
        finally:
            driver.kill()
    reported = log.read_text()
    assert code == 1, reported
    assert "quotascope: Spark gave up: " in reported, reported
    assert "Traceback" not in reported, reported
    assert "defect" not in reported
    again = subprocess.run([*command, "--json"], env=environ, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert '"added": 5395' in again.stdout
