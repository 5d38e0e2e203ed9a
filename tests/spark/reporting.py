"""Tasks that get throttle times, and the truth about what they got."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.spark.settling import settle

from quotascope.clients.accounting import ThrottleAccount
from quotascope.spark_listener import Listener
from quotascope.spark_listener.task import JobThrottles


class Reported(NamedTuple):
    """
    A client of a job, whose throttle times are written to a file of the attempt before they are counted.

    The file is the truth: a failed attempt does not take it back, and each evaluation writes again.
    """

    folder: Path
    client_id: str

    def write(self, throttle_ms: int) -> None:
        task = TaskContext.get()
        name = "driver" if task is None else str(task.taskAttemptId())
        with (self.folder / name).open("a") as file:
            file.write(f"{throttle_ms}\n")

    def report(self, account: ThrottleAccount, throttle_ms: int) -> None:
        """Count a throttle time as if a broker had reported it."""
        self.write(throttle_ms)
        account.client("alice", self.client_id, "write").throttled(throttle_ms)

    @property
    def failed(self) -> Path:
        """Path at which a task may say which of its attempts failed."""
        return self.folder.with_name(f"{self.client_id}-failed")

    def truth(self) -> list[int]:
        """Every throttle time, in ms."""
        return [int(line) for file in self.folder.iterdir() for line in file.read_text().splitlines()]


def first_attempt() -> bool:
    """Return whether this is the first try of the first task, which is the one that is to fail."""
    task = TaskContext.get()
    assert task is not None
    return task.partitionId() == 0 and task.attemptNumber() == 0


class Counted(NamedTuple):
    throttled_ms: int
    responses: int
    queries: frozenset[str]


class Watched(NamedTuple):
    spark: SparkSession
    listener: Listener

    @property
    def throttles(self) -> JobThrottles:
        assert self.listener.throttles is not None
        return self.listener.throttles

    def counted(self, client_id: str) -> Counted:
        """Return all figures of a client when the job is over."""
        settle(self.spark)
        found = [
            (query, totals)
            for query, totals in self.listener.collect().throttles
            if totals.client.client_id == client_id
        ]
        return Counted(
            sum(totals.throttled_ms for _, totals in found),
            sum(totals.responses for _, totals in found),
            frozenset(query for query, _ in found),
        )

    def unknown(self) -> int:
        """Attempts that reported nothing."""
        settle(self.spark)
        return self.listener.collect().unknown_attempts


def rows(reported: Reported, account: ThrottleAccount) -> Iterator[int]:
    for throttle_ms in (250, 30, 160):
        reported.report(account, throttle_ms)
        yield throttle_ms
