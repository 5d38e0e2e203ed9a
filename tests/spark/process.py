"""Spark in a process of its own: another version, another configuration, or several sessions at once."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from pyspark.sql import SparkSession
from tests.integration.child import tether
from tests.spark import sessions
from tests.spark.provision import installed
from tests.spark.versions import NEWEST, ROOT, RUNNING, python_path

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Job = Callable[Concatenate[SparkSession, Arguments], Answer]


class JobFailed(Exception):
    """An error of a job or of its process; the message holds what it wrote."""


def variables(version: str, folder: Path, *more: Path) -> dict[str, str]:
    """The environment of a process that is to import that version, and what is in `more`. Raises `NotFetched`."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH", "COV_CORE"))
    }
    if version != NEWEST:
        own["SPARK_HOME"] = str(installed(version) / "pyspark")
    path = os.pathsep.join([*python_path(version), *map(str, more)])
    return {**own, **sessions.environment(folder, version), "PYTHONPATH": path}


@dataclass(frozen=True, slots=True)
class SparkProcess:
    popen: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        """The driver's Python process; its JVM is a child of it."""
        return self.popen.pid

    def call(self, job: Job[Arguments, Answer], *arguments: Arguments.args, **keywords: Arguments.kwargs) -> Answer:
        """
        Let the driver call a function of an importable module, with its session first; both ways as JSON.

        Raises `JobFailed`.
        """
        name = f"{job.__module__}:{job.__qualname__}"
        self.send([name, arguments, keywords])
        answer: Answer = self.receive()
        return answer

    def send(self, request: list[Any]) -> None:
        """Ask for a job without waiting for its answer."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps(request).encode() + b"\n")
        self.popen.stdin.flush()

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet. Raises `JobFailed`."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line:
            raise JobFailed(f"the driver ended:\n{self.output()[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise JobFailed(answer["error"])
        return answer["result"]

    def output(self) -> str:
        return self.log.read_text(errors="replace")


@contextmanager
def spark_process(
    folder: Path,
    *,
    version: str = RUNNING,
    master: str = sessions.LOCAL,
    conf: Mapping[str, str] | None = None,
    path: Sequence[Path] = (),
    root: Path = ROOT,
) -> Iterator[SparkProcess]:
    """
    Run a driver with a session, and all that it needs in `folder` and `path`, until the block ends.

    Another `root` is another checkout's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log, python = folder / "driver.log", sys.executable
    environment = variables(version, folder, *path)
    if root != ROOT:
        python = str(root / ".venv/bin/python")
        interpreters = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), python)
        environment |= {**interpreters, "PYTHONPATH": str(root)}
    with log.open("wb") as errors:
        popen = subprocess.Popen(
            [*tether(), python, "-m", "tests.spark.driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=root,
        )
    with popen:
        process = SparkProcess(popen, log)
        try:
            process.send([str(folder), master, dict(conf or {})])
            process.receive()
            yield process
            _finish(process)
        finally:
            popen.kill()


def _finish(process: SparkProcess) -> None:
    if process.popen.poll() is None and process.popen.stdin is not None:
        process.popen.stdin.close()
        process.popen.wait(60)
