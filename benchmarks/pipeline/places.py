"""Places of work: a process of its own, or a driver of Spark's, so that memory is that of the work."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.options import PYTHON, Checkout
from benchmarks.pipeline.runs import Side
from tests.spark.process import spark_process

SPARK = {
    "spark.driver.extraJavaOptions": "",  # all of the compiler, as on a cluster
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
}
"""Settings of the driver, whose JVM does the tasks' work, too."""
_CALLS: Final = """
import importlib, json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    name, arguments = json.loads(line)
    module, _, function = name.partition(":")
    getattr(importlib.import_module(module), function)(*arguments)
    print(file=answers, flush=True)
"""
"""A process that calls the functions that it reads, also of a checkout that has no such module."""
_STORE: Final = """
import json, sys
from pathlib import Path
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.stored import stored
folder, rows, crowd = json.loads(sys.argv[1])
stored(Path(folder), rows, Crowd(**crowd))
"""


class JobFailed(Exception):
    """A process ended before its answer; what it wrote says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """A process that runs the jobs that it is sent."""

    pid: int
    call: Callable[..., Any]

    def side(self, name: str, rows: int, job: Callable[..., Any], *arguments: object) -> Side:
        """Return a side that works here: it calls a job with arguments, and processes a number of rows."""
        return Side(name=name, rows=rows, work=partial(self.call, job, *arguments), pid=self.pid)


@contextmanager
def spark(folder: Path, checkout: Checkout, memory: str = "4g") -> Iterator[Place]:
    """Yield a driver with two cores; a job is a function of an importable module that takes the session first."""
    conf = {**SPARK, "spark.driver.memory": memory}
    with spark_process(folder, master="local[2]", conf=conf, root=checkout.root) as process:
        yield Place(process.pid, process.call)


@contextmanager
def alone(checkout: Checkout) -> Iterator[Place]:
    """Yield a Python process; a job is a function of an importable module whose arguments JSON can hold."""
    with subprocess.Popen(
        [checkout.root / PYTHON, "-c", _CALLS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=checkout.root,
    ) as popen:
        assert popen.stdin is not None
        assert popen.stdout is not None
        calls, answers = popen.stdin, popen.stdout

        def call(job: Callable[..., Any], *arguments: object) -> None:
            name = f"{job.__module__}:{job.__qualname__}"
            calls.write(json.dumps([name, arguments]) + "\n")
            calls.flush()
            if not answers.readline():
                raise JobFailed(name)

        try:
            yield Place(popen.pid, call)
        finally:
            popen.kill()


def store(folder: Path, rows: int, crowd: Crowd, checkout: Checkout) -> None:
    """Write a history of so many rows there as a checkout stores it, which another one may not read."""
    arguments = json.dumps([str(folder), rows, asdict(crowd)])
    command = [str(checkout.root / PYTHON), "-c", _STORE, arguments]
    subprocess.run(command, check=True, cwd=checkout.root)
