"""The recorded events, and what they do to a job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.builders.spark_events import Event
from tools import newest

from quotascope.spark_listener.job import Job, JobSnapshot

RECORDED = newest.ROOT / newest.RECORDED
VERSIONS = newest.recorded()
"""Versions of Spark whose events are recorded, oldest first."""
NEWEST = VERSIONS[-1]


def recorded(version: str, case: str) -> Iterator[Event]:
    with (RECORDED / version / f"{case}.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def after(events: Iterable[Any]) -> JobSnapshot:
    """Return the state of a job after these events."""
    job = Job("app")
    for event in events:
        job.handle(event)
    return job.snapshot()


def log_of(version: str, kind: str) -> Path:
    """Return the path of a recorded event log: plain, zstd or rolling."""
    return next((RECORDED / version / "logs" / kind).iterdir())


class Remembered:
    """Books that only remember what was reported."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.passed_events = 0
        self.lost_events = self.lost_ends = 0

    @property
    def kinds(self) -> list[str]:
        return [str(event["Event"]) for event in self.events]

    def handle(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    def passed(self, events: int) -> None:
        self.passed_events += events

    def lost(self, events: int, *, ends: bool = True) -> None:
        self.lost_events += events
        self.lost_ends += events if ends else 0
