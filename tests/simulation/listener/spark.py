"""A simulated Spark application: the events that it posts, by seed, and what they say of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.builders.spark_events import (
    QUOTA,
    TIMEOUT,
    Event,
    application_ended,
    ended,
    executor_added,
    executor_removed,
    java_failure,
    python_failure,
    query_progressed,
    query_started,
    query_terminated,
    stage_completed,
    stage_submitted,
    started,
)

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.task import note

EPOCH: Final = 1_795_251_780.0
"""Unix time in seconds at which a simulation begins."""
CLIENTS: Final = (
    Client("alice", "billing", "write"),
    Client("", "x", "read"),
    Client("é😀\n", 'a"b', "admin"),
    Client("\ud800", "y" * 100, "write"),
)
_LOST: Final = "Remote RPC client disassociated. Likely due to containers exceeding thresholds"
_WORKER: Final = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat A.b(A.scala:1)"
_OUTCOMES: Final[dict[str, tuple[Event, FailureCause | None]]] = {
    "quota": (python_failure(QUOTA), FailureCause.KAFKA_QUOTA),
    "timeout": (python_failure(TIMEOUT), FailureCause.KAFKA_TIMEOUT),
    "other": (python_failure("ValueError: no"), FailureCause.OTHER),
    "worker": (java_failure(_WORKER), FailureCause.PYTHON_WORKER_DIED),
    "preempted": ({"Reason": "TaskKilled", "Kill Reason": "preempted"}, FailureCause.KILLED),
    "denied": ({"Reason": "TaskCommitDenied"}, None),
    "lost": ({"Reason": "ExecutorLostFailure", "Loss Reason": _LOST}, FailureCause.EXECUTOR_LOST),
}
_FETCH_FAILED: Final = {"Reason": "FetchFailed", "Message": "gone"}

Throttled = dict[tuple[str, Client], list[int]]
"""Milliseconds and responses by the name of a query and client."""


@dataclass
class Truth:
    """State of an application, as far as its events were posted."""

    failures: Counter[FailureCause] = field(default_factory=Counter)
    retries: Counter[FailureCause] = field(default_factory=Counter)
    repeats: int = 0
    """Attempts that repeat one that did not fail: a retry for all who did not see that."""
    stage_retries: int = 0
    lost_executors: set[str] = field(default_factory=set)
    noted: Throttled = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    """In notes of failed attempts, by the id of a query."""
    reporting: set[int] = field(default_factory=set)
    """Stages with an attempt that left a note."""
    unreported: Counter[int] = field(default_factory=Counter)
    """Attempts that neither succeeded nor left a note, by stage."""
    runs: Counter[str] = field(default_factory=Counter)
    """Runs of each query, by id."""
    names: dict[str, str] = field(default_factory=dict)

    def unknown_attempts(self, more: set[int] = frozenset()) -> int:  # type: ignore[assignment]
        """Return the attempts without a report, in stages that report."""
        return sum(number for stage, number in self.unreported.items() if stage in self.reporting | more)

    def throttled(self, *parts: Throttled) -> dict[tuple[str, Client], tuple[int, int]]:
        """Return the sums of some throttle times, by the name of a query and client."""
        sums: Throttled = defaultdict(lambda: [0, 0])
        for part in parts:
            for (query, client), (ms, responses) in part.items():
                entry = sums[self.names.get(query, query), client]
                entry[0] += ms
                entry[1] += responses
        return {key: (ms, responses) for key, (ms, responses) in sums.items()}


class Application:
    """
    Stages that run beside each other, their attempts, executors and streaming queries.

    Args:
        random: decides what happens.

    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.truth = Truth()
        self.accumulated: Throttled = defaultdict(lambda: [0, 0])
        """Throttle times of successful tasks, which no event has."""
        self.now = EPOCH
        self.is_over = False
        self._tasks = self._stages = self._executors = self._queries = 0
        self._running: list[Iterator[Event]] = []
        self._live: list[str] = []
        """Executors."""
        self._active: dict[str, str] = {}
        """The run of each active query."""
        self._batches: Counter[str] = Counter()
        self._of_queries = random.choice((0.25, 0.25, 0.6))
        """Up to which number of a step it is about queries."""

    def step(self) -> Iterator[Event]:
        """Yield the events of some of its work."""
        random = self.random
        choice = random.random()
        if choice < 0.1 or len(self._live) < 2:
            yield from self._executor_changes()
        elif choice < self._of_queries:
            yield from self._query_changes()
        elif choice < self._of_queries + 0.2 or not self._running:
            if len(self._running) < 3:
                self._running.append(self._stage())
        else:
            index = random.randrange(len(self._running))
            for _ in range(random.randrange(1, 8)):
                event = next(self._running[index], None)
                if event is None:
                    del self._running[index]
                    return
                yield event

    def end(self) -> Iterator[Event]:
        """Yield the events of its end, which takes its executors along."""
        self.is_over = True
        early = [name for name in self._live if self.random.random() < 0.2]
        over = self._later()
        for name in early:  # threads of the driver race each other
            yield executor_removed(name, over + 1, "Remote RPC client disassociated")
        yield application_ended(over)
        for name in self._live:
            yield executor_removed(name, over + 1, "Remote RPC client disassociated")

    def _later(self) -> float:
        self.now += self.random.choice((0.001, 0.01, 1.0, 20.0))
        return self.now

    def _executor_changes(self) -> Iterator[Event]:
        if len(self._live) < 2 or self.random.random() < 0.5:
            self._executors += 1
            name = str(self._executors)
            self._live.append(name)
            yield executor_added(name, self._later())
            return
        name = self._live.pop(self.random.randrange(len(self._live)))
        reason = self.random.choice((_LOST, "Executor killed by driver.", "Container on host h was preempted."))
        if "killed by driver" not in reason:
            self.truth.lost_executors.add(name)
        yield executor_removed(name, self._later(), reason)

    def _query_changes(self) -> Iterator[Event]:
        random, truth = self.random, self.truth
        if not self._active or random.random() < 0.2:
            stopped = sorted(truth.names.keys() - self._active.keys())
            if stopped and random.random() < 0.6:
                query = random.choice(stopped)
            else:
                self._queries += 1
                query = f"id-{self._queries}"
                truth.names[query] = random.choice(("clicks", "views", query))
            truth.runs[query] += 1
            self._active[query] = f"{query}-run-{truth.runs[query]}"
            name = "" if truth.names[query] == query else truth.names[query]
            yield query_started(query, self._active[query], name, began=self._later())
            return
        query = random.choice(sorted(self._active))
        if random.random() < 0.2:
            yield query_terminated(query, self._active.pop(query))
            return
        self._batches[query] += 1
        name = "" if truth.names[query] == query else truth.names[query]
        source = self._source(self._batches[query])
        more = {"batchId": self._batches[query]}
        yield query_progressed(
            source, query=query, run=self._active[query], name=name, began=self._later() - 2.5, **more
        )

    def _source(self, batch: int) -> Event:
        offsets = {"t": {"0": 100 * batch, "1": 90 * batch}}
        newest = {"t": {"0": 120 * batch, "1": 95 * batch}}
        metrics = {"maxOffsetsBehindLatest": str(20 * batch), "avgOffsetsBehindLatest": str(12.5 * batch)}
        description = "KafkaV2[Subscribe[t]]"
        return {"description": description, "endOffset": offsets, "latestOffset": newest, "metrics": metrics}

    def _stage(self) -> Iterator[Event]:
        random = self.random
        stage, self._stages = self._stages, self._stages + 1
        query = random.choice(["", "", *self._active])
        partitions = [*range(random.randrange(1, 5))]
        attempts: Counter[int] = Counter()
        pending: dict[int, FailureCause | None] = {}
        yield stage_submitted(stage, query=query, info=self._times())
        for number in range(3):
            left = []
            for partition in partitions:
                succeeded = yield from self._task(stage, number, partition, query, attempts, pending)
                if not succeeded:
                    left.append(partition)
            failed = "FetchFailed" if left and number < 2 else ""
            yield stage_completed(stage, number, failed, info={**self._times(), **self._times("Completion Time")})
            if not failed:
                return
            partitions = left
            attempts.clear()  # a new attempt at a stage counts from 0
            self.truth.stage_retries += 1
            yield stage_submitted(stage, number + 1, query=query, info=self._times())

    def _times(self, key: str = "Submission Time") -> Event:
        return {key: int(self._later() * 1_000)}

    def _task(
        self,
        stage: int,
        number: int,
        partition: int,
        query: str,
        attempts: Counter[int],
        pending: dict[int, FailureCause | None],
    ) -> Any:
        """Yield the events of the attempts at a task; return whether one succeeded."""
        random, truth = self.random, self.truth
        for _ in range(4):
            attempt = {**self._numbers(stage, number, partition), "number": attempts[partition]}
            attempts[partition] += 1
            cause = pending.pop(partition, None)
            if cause is not None:
                truth.retries[cause] += 1
            truth.repeats += attempt["number"] > 0 and cause is None
            yield started(began=self._later(), **attempt)
            if random.random() < 0.1:
                yield from self._race(attempt, attempts)
            outcome = random.choice(["success"] * 6 + [*_OUTCOMES, "fetch"])
            if outcome == "success":
                client = random.choice(CLIENTS)
                self._add(self.accumulated, query, ClientTotals(client, random.randrange(900), 1, 5))
                yield ended(began=self.now, over=self._later(), **attempt)
                if random.random() < 0.9:
                    return True
                truth.failures[FailureCause.EXECUTOR_LOST] += 1
                pending[partition] = FailureCause.EXECUTOR_LOST
                yield ended("Resubmitted", began=self.now, over=self._later(), **attempt)
            elif outcome == "fetch":
                truth.failures[FailureCause.FETCH_FAILED] += 1
                truth.unreported[stage] += 1
                pending[partition] = FailureCause.FETCH_FAILED
                yield ended(_FETCH_FAILED, began=self.now, over=self._later(), **attempt)
                return False
            else:
                yield self._failed(outcome, attempt, query, pending)
        return False

    def _race(self, attempt: dict[str, Any], attempts: Counter[int]) -> Iterator[Event]:
        """Yield the events of a speculative attempt that loses."""
        self._tasks += 1
        racing = {**attempt, "task": self._tasks, "number": attempts[attempt["partition"]], "speculative": True}
        attempts[attempt["partition"]] += 1
        yield started(began=self._later(), **racing)
        # of an attempt that did not fail, and is repeated by none: the first goes on
        self.truth.unreported[attempt["stage"]] += 1
        reason = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
        yield ended(reason, began=self.now, over=self._later(), **racing)

    def _numbers(self, stage: int, number: int, partition: int) -> dict[str, Any]:
        self._tasks += 1
        executor = self.random.choice(self._live or ["1"])
        return {
            "stage": stage, "stage_attempt": number, "partition": partition, "task": self._tasks, "executor": executor,
        }  # fmt: skip

    def _failed(
        self, outcome: str, attempt: dict[str, Any], query: str, pending: dict[int, FailureCause | None]
    ) -> Event:
        """Return the end of an attempt that fails."""
        random, truth = self.random, self.truth
        reason, cause = _OUTCOMES[outcome]
        is_noted = reason["Reason"] == "ExceptionFailure" and outcome != "worker" and random.random() < 0.5
        if is_noted:
            clients = random.sample(CLIENTS, random.randrange(1, 4))
            rows = [ClientTotals(client, random.choice((0, 1, 700)), 2, 1) for client in clients]
            key = note.AttemptKey(attempt["stage"], attempt["number"], attempt["task"])
            lines = note.text_of(key, note.Note(query, tuple(rows)))
            reason = python_failure(reason["Description"].split("\n")[3], lines)
            for totals in rows:
                self._add(truth.noted, query, totals)
            truth.reporting.add(attempt["stage"])
            if outcome == "timeout" and any(totals.throttled_ms for totals in rows):
                cause = FailureCause.KAFKA_TIMEOUT_THROTTLED
        else:
            truth.unreported[attempt["stage"]] += 1
        if outcome == "lost":
            truth.lost_executors.add(attempt["executor"])
        if cause is not None:
            truth.failures[cause] += 1
        pending[attempt["partition"]] = cause
        return ended(reason, began=self.now, over=self._later(), **attempt)

    @staticmethod
    def _add(throttled: Throttled, query: str, totals: ClientTotals) -> None:
        entry = throttled[query, totals.client]
        entry[0] += totals.throttled_ms
        entry[1] += totals.responses
