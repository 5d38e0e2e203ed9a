"""A sender whose answers are scripted."""

from __future__ import annotations

import threading

from quotascope.exporter.otlp.push import (
    PushResult,
)
from quotascope.exporter.snapshot import Snapshot


class ScriptedSender:
    def __init__(self) -> None:
        self.sent: list[tuple[Snapshot, float]] = []
        self.report = PushResult(accepted=1)
        self.error: Exception | None = None
        self.released = threading.Event()
        self.released.set()
        self.began = threading.Event()
        self.closed = 0
        self.threads: set[str] = set()

    def send(self, state: Snapshot, now_seconds: float) -> PushResult:
        self.began.set()
        self.threads.add(threading.current_thread().name)
        self.released.wait(20)
        self.sent.append((state, now_seconds))
        if self.error is not None:
            raise self.error
        return self.report

    def close(self) -> None:
        self.closed += 1
