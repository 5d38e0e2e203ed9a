"""Where work is done: in a process of its own, or in a driver of Spark's, so that memory is that of the work."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.pipeline.runs import Side
from tests.spark.process import spark_process

SPARK = {
    "spark.driver.extraJavaOptions": "",  # all of the compiler, as on a cluster
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
}
"""Settings of the driver, whose JVM does the tasks' work, too."""


@dataclass(frozen=True, slots=True)
class Place:
    """A process that does what it is told."""

    pid: int
    call: Callable[..., Any]

    def side(
        self, name: str, rows: int, job: Callable[..., Any], *arguments: object
    ) -> Side:
        """A side that works here: it calls a job with arguments, and goes through so many rows."""
        return Side(
            name=name, rows=rows, work=partial(self.call, job, *arguments), pid=self.pid
        )


@contextmanager
def spark(folder: Path, memory: str = "4g") -> Iterator[Place]:
    """A driver with two cores; a job is a function of an importable module that takes the session first."""
    conf = {**SPARK, "spark.driver.memory": memory}
    with spark_process(folder, master="local[2]", conf=conf) as process:
        yield Place(process.pid, process.call)


@contextmanager
def alone() -> Iterator[Place]:
    """A Python process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield Place(
            pool.submit(os.getpid).result(),
            lambda job, *arguments: pool.submit(job, *arguments).result(),
        )
