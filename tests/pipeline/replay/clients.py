"""Clients that wait for their throttles, in front of brokers of the real engine: what the closed loop models, written plainly."""

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from tests.pipeline.replay.brokers import FETCH, Cluster
from tests.pipeline.replay.histories import SIZES

from quotascope.metrics import QuotaType
from quotascope.quotas.candidates import Candidate

Row = Mapping[str, Any]


@dataclass
class Simulation:
    """One candidate's clients and brokers."""

    table: pa.Table
    candidate: Candidate
    drain_ms: int
    throttled: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Throttled requests by user, client id and quota type."""
    throttled_ms: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    unsent: Counter[tuple[str, str]] = field(default_factory=Counter)
    late_ms: dict[tuple[str, str], int] = field(default_factory=dict)

    def run(self) -> "Simulation":
        """Let every connection send its requests one after the other."""
        self._rows = self.table.to_pylist()
        self._cluster = Cluster(self.candidate)
        self._left = [_size(row) for row in self._rows]
        self._repeated: set[int] = set()
        self._queue: list[tuple[int, int, int]] = []
        self._next: dict[int, int] = {}
        self._reactions: dict[tuple[object, ...], int] = {}
        self._begin()
        last = {_whose(row): row["timestamp"] for row in self._rows}
        while self._queue:
            now_ms, later, number = heapq.heappop(self._queue)
            row = self._rows[number]
            if later:
                self._cluster.network(row, now_ms)
            elif now_ms > last[_whose(row)] + self.drain_ms:
                self._give_up(number)
            else:
                self._send(number, row, now_ms)
        return self

    def _begin(self) -> None:
        last: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(self._rows):
            connection = _connection(row)
            if connection in last:
                self._next[last[connection]] = number
                self._note_reaction(connection, self._rows[last[connection]], row)
            else:
                heapq.heappush(self._queue, (row["timestamp"], 0, number))
            last[connection] = number

    def _note_reaction(self, connection: tuple[object, ...], row: Row, following: Row) -> None:
        left_ms = following["timestamp"] - row["timestamp"] - row["throttle_ms"]
        if row["throttle_ms"] > 0 and left_ms > 0:
            known = self._reactions.get(connection, left_ms)
            self._reactions[connection] = min(known, left_ms)

    def _send(self, number: int, row: Row, now_ms: int) -> None:
        whole, left = _size(row), self._left[number]
        part = min(left, self._most(row)) if row["api_key"] == FETCH else left
        share = part / whole if part < whole else 1.0
        verdict = self._cluster.decide(row, part, now_ms, share=0.0 if number in self._repeated else share)
        entity = row["user"], row["client_id"]
        late_ms = now_ms - row["timestamp"]
        self.late_ms[entity] = max(self.late_ms.get(entity, 0), late_ms)
        wait_ms = verdict.decision.throttle_time_ms
        if verdict.decision.throttled_by is not None:
            what = (*entity, verdict.decision.throttled_by.label)
            self.throttled[what] += 1
            self.throttled_ms[what] += wait_ms
        self.rejected[entity] += verdict.refused
        if verdict.decision.unrecord_fetch:
            self._cluster.give_back(row, part, now_ms)
        if verdict.refused or verdict.decision.throttled_by is not None:
            wait_ms += self._reactions.get(_connection(row), 1)
        self._repeated.discard(number)
        if verdict.refused or verdict.decision.unrecord_fetch:
            self._repeated.add(number)
            heapq.heappush(self._queue, (now_ms + wait_ms, 0, number))
        elif row["api_key"] == FETCH and left > part:
            self._left[number] -= part
            heapq.heappush(self._queue, (now_ms, 0, number))
        else:
            self._answered(number, row, now_ms, wait_ms)

    def _answered(self, number: int, row: Row, now_ms: int, wait_ms: int) -> None:
        if row["network_time_ms"]:
            after_ms = row["completed"] - row["timestamp"]
            heapq.heappush(self._queue, (now_ms + after_ms, 1, number))
        if number in self._next:
            following = self._next[number]
            think_ms = self._rows[following]["timestamp"] - row["timestamp"]
            think_ms = max(0, think_ms - row["throttle_ms"])
            heapq.heappush(self._queue, (now_ms + max(think_ms, wait_ms), 0, following))

    def _most(self, row: Row) -> int:
        table = self.candidate.tables()[QuotaType.FETCH]
        bound = table.decide(row["user"], row["client_id"]).bound
        return 1 << 62 if bound is None else max(1, int(bound * 10))

    def _give_up(self, number: int) -> None:
        row = self._rows[number]
        if row["thread_time_ms"] is not None:
            self.unsent[row["user"], row["client_id"]] += 1
        if number in self._next:
            self._give_up(self._next[number])


def _connection(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("broker", "connection", "user", "client_id"))


def _whose(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("broker", "user", "client_id"))


def _size(row: Row) -> int:
    return next((row[name] for name in SIZES if row[name] is not None), 0)
