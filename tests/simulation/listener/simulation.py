"""
The Spark listener on a bounded queue of events that come late, twice, out of order, cut, contradicting, huge or never.

All is the listener's own but for the JVM: `queue.EventQueue` stands for the class in Java, and a seed decides what
happens. What must hold after each step:

- nothing raises, and nothing but a JVM that is gone becomes a problem
- every event that Spark posted was handled, left out on purpose, or is counted as lost
- no counter goes back, in a snapshot and on the page, also of series that were away
- throttle times of Python clients are called complete only while no event that may end an attempt was lost
- events that are missing make no figure higher than it is
- what is kept has its bounds
- without faults each figure is true, and an event log of the same events shows the same
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests.builders.spark_events import application_started, log_started

from quotascope.clients.accounting import ClientTotals
from quotascope.metrics.catalog import FamilyType
from quotascope.spark_listener.event_log import event_of
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.exposition.collector import SERIES, series_of
from quotascope.spark_listener.job import (
    Job,
    JobSnapshot,
    QueryTotals,
    attempts,
    job,
    queries,
    read_summary,
    throttles,
    write_summary,
)
from quotascope.spark_listener.listener import Listener
from quotascope.spark_listener.report.application import read_application
from quotascope.spark_listener.sources import pull
from quotascope.spark_listener.sources.choice import _jvm_names
from quotascope.spark_listener.sources.event_log import EventLogSource, LogPlace

from .queue import LONGEST, EventQueue, ListenerBus, Posted
from .spark import EPOCH, Application, Throttled

STEPS: Final = 60
FAULTS: Final = ("late", "twice", "cut", "contradicting", "huge", "dropped")
_LOSSES: Final = {"cut", "huge", "dropped"}
"""Faults by which an event is missing, and none is there that did not happen."""
_BEGINS_MS: Final = int(EPOCH * 1_000)
_BOUNDS: Final[dict[Any, tuple[str, ...]]] = {
    attempts: ("_MOST_TO_REPEAT", "_MOST_RUNNING", "_MOST_STAGES", "_MOST_EXECUTORS"),
    job: ("_MOST_STAGES", "_MOST_PARTS"),
    throttles: ("_MOST_QUERIES", "_MOST_CLIENTS"),
    queries: ("_MOST_RUNS",),
}
_PADDING: Final = "x" * LONGEST
_CRAMPED: Final = 3
"""Of each bound, where a seed has narrow ones."""


class Broken(AssertionError):
    """An invariant that does not hold; the message says which."""


def holds(condition: object, text: str) -> None:
    """Raise `Broken` unless a condition holds."""
    if not condition:
        raise Broken(text)


class Simulation:
    """
    One application, its listener, and the events between them.

    Args:
        seed: decides what happens.
        folder: for the event log and the summary.

    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)  # noqa: S311 - repeats
        random = self.random
        self.folder = folder
        self.steps: list[str] = []
        self.faults = tuple(random.sample(FAULTS, random.randrange(1, 4))) if random.random() < 0.6 else ()
        self.cramped = bool(self.faults) and random.random() < 0.4
        self.capacity = random.choice((1, 5, 40, 1_000)) if self.faults else 100_000
        self.thin = random.random() < 0.8
        self.application = Application(random)
        self.events: list[dict[str, Any]] = []
        """All that the application posted, in order."""
        self.wanted = _jvm_names()
        self.posted = 0
        """Events that the listener wants, each as often as it came to the bus."""
        self.lost_ends = 0
        self.is_missing_end = False
        """Whether the end of the application, which takes executors along, was lost or came late."""
        self.may_differ = False
        """Whether executors that the end took along were shown as lost before."""
        self.late: list[tuple[int, Posted]] = []
        self.counters: dict[tuple[object, ...], float] = {}
        self.is_reader_broken = False
        self.was_read = False
        self.readable: tuple[QueryTotals, ...] = ()
        self.bus = ListenerBus()
        self._reads = count()

    def run(self) -> None:
        """Run all steps, and check the invariants."""
        self.listener = Listener(Job("app\n\ud800", self._clock))
        self.job = self.listener.job
        self.job.add_throttles(self._read, "python")
        self.source = pull.PullSource(
            SimpleNamespace(_gateway=None),
            self.job,
            event_names=self.wanted,
            capacity=self.capacity,
            thin=self.thin,
            clock=self._clock,
        )
        self.queue: EventQueue = self.bus.queue  # type: ignore[assignment]
        self.listener._sources.append(self.source)
        self.job.source(self.source.name)
        for step in range(STEPS):
            self._step(step)
        for event in self.application.end():
            self._post(event, STEPS)
            if self.random.random() < 0.2:
                self._collect()
        while self.late:
            self._deliver(self.late.pop()[1])
        self._collect()
        self.listener._detach()
        self._check()
        self._check_end()

    def _step(self, step: int) -> None:
        random = self.random
        for _, posted in [entry for entry in self.late if entry[0] <= step]:
            self._deliver(posted)
        self.late = [entry for entry in self.late if entry[0] > step]
        for event in self.application.step():
            self._post(event, step)
        if random.random() < 0.1:
            self.is_reader_broken = not self.is_reader_broken
        if self.faults and random.random() < 0.003:
            self.queue.is_gone = True
            self.steps.append("the JVM ends")
        if random.random() < 0.4:
            self._collect()

    def _clock(self) -> float:
        """Return the time, never the same one twice."""
        return self.application.now + next(self._reads) / 1_000_000

    def _read(self) -> tuple[QueryTotals, ...]:
        """Return the throttle times of successful tasks, as an accumulator does."""
        if self.is_reader_broken:
            raise OSError("the driver is gone")
        self.readable = tuple(
            (query, ClientTotals(client, ms, responses, ms))
            for (query, client), (ms, responses) in self.application.accumulated.items()
        )
        return self.readable

    def _post(self, event: dict[str, Any], step: int) -> None:
        """Let an event come to the bus, with what the faults make of it."""
        self.events.append(event)
        random, posted = self.random, Posted(event)
        fault = random.choice(self.faults) if self.faults and random.random() < 0.15 else ""
        if fault:
            self.steps.append(f"{fault} {event['Event']}")
        match fault:
            case "late":
                self.is_missing_end |= event["Event"] == "SparkListenerApplicationEnd"
                self.late.append((step + random.randrange(1, 20), posted))
                return
            case "twice":
                self._deliver(posted)
            case "cut":
                text = posted.text()
                posted = replace(posted, json=random.choice(("", text[: random.randrange(len(text))])))
            case "contradicting":
                posted = replace(posted, json=json.dumps(self._contradicted(event)))
            case "huge":
                posted = replace(posted, json=f'{posted.text()[:-1]},"Padding":"{_PADDING}"}}')
            case "dropped":
                if posted.class_name in self.wanted:
                    self.posted += 1
                    self.lost_ends += 1
                    self.bus.dropped += 1
                    self.is_missing_end |= event["Event"] == "SparkListenerApplicationEnd"
                return
        self._deliver(posted)

    def _deliver(self, posted: Posted) -> None:
        """Pass an event to the queue, and note what it loses."""
        refused = self.queue.refused
        is_wanted = posted.class_name in self.wanted
        self.queue.onEvent(posted)
        self.posted += is_wanted
        is_skipped = not self.queue.successes and posted.is_ordinary
        is_refused = self.queue.refused > refused
        is_cut = posted.json is not None and not is_skipped and is_wanted and event_of(posted.text()) is None
        if is_refused or is_cut:
            self.is_missing_end |= posted.event["Event"] == "SparkListenerApplicationEnd"
            if is_refused or not posted.text().startswith('{"Event":"') or _is_end(posted.text()):
                self.lost_ends += 1

    def _contradicted(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return an event with some values that another event, or no event, has."""
        random, changed = self.random, json.loads(json.dumps(event))
        for part in (changed, changed.get("Task Info"), changed.get("Stage Info"), changed.get("progress")):
            if not isinstance(part, dict):
                continue
            # the counts of a query belong to its name, and go with it
            for key in [key for key in part if random.random() < 0.3 and key not in ("Event", "name", "id")]:
                values: tuple[Any, ...] = (
                    0,
                    1,
                    2,
                    -5,
                    2**62,
                    2**80,
                    1e300,
                    float("nan"),
                    None,
                    "",
                    "1",
                    [],
                    {},
                    True,
                    "x" * 5_000,
                )
                part[key] = random.choice(values)
        if random.random() < 0.1:
            changed["Event"] = random.choice((7, None, "SparkListenerTaskEnd", "x"))
        return changed  # type: ignore[no-any-return]

    def _collect(self) -> None:
        """Fetch, as the listener's thread does, and check."""
        self.listener.attempt("attach", self.listener.collect)
        self._check()

    def _check(self) -> None:
        snapshot = self.job.snapshot()
        problems = {problem.part for problem in self.listener.problems}
        holds(self.queue.is_gone or not problems, f"{self.listener.problems}")
        holds(problems <= {"pull"}, f"{self.listener.problems}")
        if not self.application.is_over and snapshot.executors_lost > len(self.application.truth.lost_executors):
            self.may_differ = True
        self.may_differ |= self.application.is_over and not any(
            event["Event"] == "SparkListenerApplicationEnd" for event in self.events
        )
        self._check_losses(snapshot)
        self._check_counters(snapshot)
        self._check_truth(snapshot)
        self._check_bounds(snapshot)

    def _check_losses(self, snapshot: JobSnapshot) -> None:
        """Every event of Spark is handled, left out or lost, and completeness is claimed only if none is missing."""
        waiting = len(self.queue.waiting)
        if not self.queue.is_gone:
            seen = snapshot.events + snapshot.lost_events + waiting
            holds(seen == self.posted, f"of {self.posted} events {seen} are counted")
            is_complete = "python" in snapshot.seen_clients
            holds(not (is_complete and self.lost_ends and not waiting), "throttle times are called complete")
            if self.readable and "contradicting" not in self.faults and not self.lost_ends:
                holds(is_complete, "throttle times are called incomplete, and nothing was lost")
        path = self.folder / "summary.json"
        if self.random.random() < 0.05:
            write_summary(snapshot, path)
            summary = read_summary(path)
            kept = summary.unknown_attempts, summary.seen_clients
            holds(kept == (snapshot.unknown_attempts, snapshot.seen_clients), "the summary says something else")

    def _check_counters(self, snapshot: JobSnapshot) -> None:
        for family in SERIES:
            if family.type is FamilyType.COUNTER:
                for labels, number in series_of(family, [snapshot]).items():
                    self._grows(number, family.name, *labels)
        for name in ("events", "lost_events", "executors_lost", "unknown_attempts", "stage_retries"):
            self._grows(getattr(snapshot, name), name)

    def _grows(self, number: float, *key: object) -> None:
        last = self.counters.get(key, number)
        holds(number >= last, f"the counter {key} goes back from {last} to {number}")
        self.counters[key] = number

    def _check_truth(self, snapshot: JobSnapshot) -> None:
        """Require that no figure is too high where events are missing, and each is right where none is."""
        truth = self.application.truth
        if self.cramped or not set(self.faults) <= _LOSSES:
            return
        exact = not self.faults
        lost = sum(truth.failures.values()), sum(truth.retries.values())
        figures: dict[str, tuple[float, float]] = {
            "failures": (sum(snapshot.failures.values()), lost[0]),
            "retries": (sum(snapshot.retries.values()), lost[1] + (0 if exact else truth.repeats)),
            "stage retries": (snapshot.stage_retries, truth.stage_retries),
            "unknown attempts": (snapshot.unknown_attempts, truth.unknown_attempts()),
            "restarts": (_restarts(snapshot), sum(truth.runs.values()) - len(truth.runs)),
        }
        figures |= {f"failures by {cause}": (snapshot.failures[cause], truth.failures[cause]) for cause in FailureCause}
        if not self.is_missing_end and not self.may_differ:
            figures["lost executors"] = snapshot.executors_lost, len(truth.lost_executors)
        for name, (ours, true) in figures.items():
            holds(ours <= true, f"{name}: {ours} are shown of {true}")
        if exact and not self.queue.waiting:
            holds(all(ours == true for ours, true in figures.values()), f"shown and true: {figures}")
            holds(snapshot.retries == {cause: truth.retries[cause] for cause in FailureCause}, "retries differ")
            self._check_throttles(snapshot, self._as_read())
        elif not truth.names:  # whose names may be missing
            shown = {(query, totals.client): totals.throttled_ms for query, totals in snapshot.throttles}
            true_ms = truth.throttled(truth.noted, self._as_read())
            for key, ms in shown.items():
                holds(ms <= true_ms.get(key, (0, 0))[0], f"{key}: {ms} ms are shown of {true_ms.get(key)}")

    def _as_read(self) -> Throttled:
        return {(query, totals.client): [totals.throttled_ms, totals.responses] for query, totals in self.readable}

    def _check_throttles(self, snapshot: JobSnapshot, *more: Throttled) -> None:
        truth = self.application.truth
        true = truth.throttled(truth.noted, *more)
        shown = {
            (query, totals.client): (totals.throttled_ms, totals.responses) for query, totals in snapshot.throttles
        }
        holds(shown == true, f"throttle times are {shown}, not {true}")

    def _check_bounds(self, snapshot: JobSnapshot) -> None:
        """Check the bounds of all that is kept."""
        if not self.cramped:
            return
        job_ = self.job
        kept: dict[str, dict[Any, Any]] = {
            "to repeat": job_._attempts._to_repeat,
            "running": job_._attempts._running,
            "reporting": job_._unreported._reporting,
            "others": job_._unreported._others,
            "busy": job_._executors._busy,
            "gone": job_._executors._gone,
            "stages": job_._query_of,
            "queries": job_._queries._queries,
        }
        for name, entries in kept.items():
            holds(len(entries) <= _CRAMPED, f"{len(entries)} entries are kept: {name}")
        holds(len(job_._notes._accounts) <= _CRAMPED + 1, "notes of too many queries are kept")
        for account in job_._notes._accounts.values():
            holds(len(list(account.totals())) <= _CRAMPED + 4, "notes of too many clients are kept")
        holds(len(snapshot.problems) <= _CRAMPED + 1, f"{snapshot.problems}")

    def _check_end(self) -> None:
        """Require that an event log of the same events gives the same, at once and while it grows, without losses."""
        if self.faults:
            return
        path = self.folder / "log"
        lines = [json.dumps(event, separators=(",", ":")) + "\n" for event in [*self._begin(), *self.events]]
        path.write_text("".join(lines))
        followed = Job("app\n\ud800", self._clock)
        source = EventLogSource(LogPlace(path=path), followed, clock=self._clock)
        source.collect()
        source.close()
        live = self.job.snapshot()
        for snapshot in (followed.snapshot(), read_application(path).snapshot):
            for name in ("failures", "retries", "stage_retries", "unknown_attempts"):
                ours, theirs = getattr(live, name), getattr(snapshot, name)
                holds(ours == theirs, f"{name} is {ours} live, and {theirs} of the log")
            true = len(self.application.truth.lost_executors)
            holds(snapshot.executors_lost == true, f"{snapshot.executors_lost} lost executors of the log, not {true}")
            holds(self.may_differ or live.executors_lost == true, "lost executors differ")
            holds(_queries(live) == _queries(snapshot), f"{_queries(live)} are not {_queries(snapshot)}")
            holds(snapshot.lost_events == 0, f"{snapshot.lost_events} events of the log are lost")
            self._check_throttles(snapshot)

    def _begin(self) -> Iterator[dict[str, Any]]:
        yield log_started("4.3.0")
        yield application_started(_BEGINS_MS / 1_000, "app", "a")


def _is_end(beginning: str) -> bool:
    return beginning.startswith('{"Event":"SparkListenerTaskEnd"')


def _restarts(snapshot: JobSnapshot) -> int:
    return sum(query.restarts for query in snapshot.queries)


def _queries(snapshot: JobSnapshot) -> list[object]:
    """Return the queries without what depends on when their events came."""
    return [replace(query, progress_age_seconds=None, trigger_seconds=None) for query in snapshot.queries]


@contextmanager
def _installed(simulation: Simulation) -> Iterator[None]:
    """Have the listener use this world."""

    def queue(_gateway: object, capacity: int, wanted: Any, *, successes: bool) -> EventQueue:
        return EventQueue(capacity, frozenset(wanted), successes)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pull, "ListenerBus", lambda _: simulation.bus)
        patched.setattr(pull, "_event_queue", queue)
        if simulation.cramped:
            for module, names in _BOUNDS.items():
                for name in names:
                    patched.setattr(module, name, _CRAMPED)
            patched.setattr(job, "QueryStates", partial(queries.QueryStates, max_queries=_CRAMPED))
        yield


def simulate(seed: int, folder: Path) -> None:
    """Run one simulation. Raises `Broken` with the seed and its steps."""
    folder.mkdir(parents=True, exist_ok=True)
    simulation = Simulation(seed, folder)
    with _installed(simulation):
        try:
            simulation.run()
        except (Exception, AssertionError) as error:
            what = f"does not hold: {error}" if isinstance(error, Broken) else f"raises {error!r}"
            faults = f"faults {simulation.faults}, capacity {simulation.capacity}, cramped {simulation.cramped}"
            raise Broken("\n  ".join([f"seed {seed} {what}", faults, *simulation.steps])) from error
