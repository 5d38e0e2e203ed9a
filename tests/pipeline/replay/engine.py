"""Brokers, a controller and waiting clients of the real engine: what replays model, written plainly."""

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from tests.builders.requests import CREATE_TOPICS, FETCH, PRODUCE
from tests.pipeline.replay.histories import SIZES
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.combination import (
    Decision,
    combine_controller,
    combine_fetch,
    combine_produce,
    combine_request,
)
from quotascope.metrics.engine.controller_mutation import ControllerMutationQuotaManager, MutationApi
from quotascope.metrics.engine.errors import ThrottlingQuotaExceeded
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.request_quota_manager import RequestQuotaManager
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.principal import Principal
from quotascope.pipeline.replay import ReplaySettings
from quotascope.quotas.candidates import Candidate

Row = Mapping[str, Any]


def size_of(row: Row) -> int:
    return next((row[name] for name in SIZES if row[name] is not None), 0)


@dataclass
class Cluster:
    """The quota managers of each broker, and of the controller."""

    candidate: Candidate
    settings: ReplaySettings = field(default_factory=ReplaySettings)
    """The releases."""
    brokers: dict[tuple[str, QuotaType], ClientQuotaManager] = field(default_factory=dict)

    def manager(self, broker: str, kind: QuotaType) -> Any:
        place = "controller" if kind is QuotaType.CONTROLLER_MUTATION else broker, kind
        if place not in self.brokers:
            manager: ClientQuotaManager
            config = ManagerConfig(release=self.settings.releases.get(place[0], self.settings.release))
            if kind is QuotaType.CONTROLLER_MUTATION:
                manager = ControllerMutationQuotaManager(Registry(), EPOCH_MS, config)
            elif kind is QuotaType.REQUEST:
                manager = RequestQuotaManager(Registry(), EPOCH_MS, config)
            else:
                manager = ClientQuotaManager(Registry(), kind, EPOCH_MS, config)
            for entity, bound in self.candidate.tables()[kind].items():
                manager.update_quota(entity, bound)
            self.brokers[place] = manager
        return self.brokers[place]

    def decide(
        self, row: Row, size: int, now_ms: int, *, wait_ms: int = 0, share: float = 1.0
    ) -> tuple[Decision, bool]:
        """Charge a request and decide, and say whether it is refused; a Fetch that is throttled is given back."""
        client = Principal(row["user"]), row["client_id"]
        request_ms = self._time(row, client, now_ms, share)
        if row["api_key"] == CREATE_TOPICS:
            manager = self.manager(row["broker"], QuotaType.CONTROLLER_MUTATION)
            quota = manager.quota_for(*client, MutationApi.CREATE_TOPICS, row["api_version"], now_ms - wait_ms)
            refused = False
            try:
                quota.record(float(size), now_ms - wait_ms)
            except ThrottlingQuotaExceeded:
                refused = True
            return combine_controller(quota.throttle_time_ms(now_ms), request_ms), refused
        if row["api_key"] not in (PRODUCE, FETCH):
            return combine_request(request_ms), False
        kind = QuotaType.PRODUCE if row["api_key"] == PRODUCE else QuotaType.FETCH
        own_ms = self.manager(row["broker"], kind).maybe_record_and_get_throttle_time(*client, float(size), now_ms)
        if kind is QuotaType.PRODUCE:
            return combine_produce(own_ms, request_ms, acks=1), False
        return combine_fetch(own_ms, request_ms), False

    def give_back(self, row: Row, size: int, now_ms: int) -> None:
        manager = self.manager(row["broker"], QuotaType.FETCH)
        if manager.quotas_enabled:
            manager.unrecord(Principal(row["user"]), row["client_id"], float(size), now_ms)

    def network(self, row: Row, now_ms: int) -> None:
        manager = self.manager(row["broker"], QuotaType.REQUEST)
        if row["network_time_ms"] and manager.quotas_enabled:
            ns = round(row["network_time_ms"] * 1e6)
            manager.record_network_thread_time(Principal(row["user"]), row["client_id"], ns, now_ms)

    def _time(self, row: Row, client: tuple[Principal, str], now_ms: int, share: float) -> int:
        if row["thread_time_ms"] is None:
            return 0
        manager = self.manager(row["broker"], QuotaType.REQUEST)
        ns = round(row["thread_time_ms"] * 1e6)
        if share == 1.0:
            return int(manager.maybe_record_request(*client, ns, now_ms))
        return int(manager.maybe_record_and_get_throttle_time(*client, ns * (100.0 / 1e9) * share, now_ms))


@dataclass
class Simulation:
    """
    The brokers of a candidate, and clients that wait for their throttles.

    Every connection sends one request after the other.
    """

    table: pa.Table
    candidate: Candidate
    settings: ReplaySettings
    throttled: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Throttled requests by user, client id and quota type."""
    throttled_ms: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused_mutations: Counter[tuple[str, str]] = field(default_factory=Counter)
    unsent: Counter[tuple[str, str]] = field(default_factory=Counter)
    late_ms: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._rows = self.table.to_pylist()
        self._cluster = Cluster(self.candidate, self.settings)
        self._left = [size_of(row) for row in self._rows]
        self._repeated: set[int] = set()
        self._queue: list[tuple[int, int, int]] = []
        self._next: dict[int, int] = {}
        self._reactions: dict[tuple[object, ...], int] = {}
        self._begin()
        last_times = {_whose(row): row["timestamp"] for row in self._rows}
        while self._queue:
            now_ms, later, number = heapq.heappop(self._queue)
            row = self._rows[number]
            if later:
                self._cluster.network(row, now_ms)
            elif now_ms > last_times[_whose(row)] + self.settings.drain_ms:
                self._give_up(number)
            else:
                self._send(number, row, now_ms)

    def _begin(self) -> None:
        last_times: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(self._rows):
            connection = _connection(row)
            if connection in last_times:
                previous = self._rows[last_times[connection]]
                self._next[last_times[connection]] = number
                left_ms = row["timestamp"] - previous["timestamp"] - previous["throttle_ms"]
                if previous["throttle_ms"] > 0 and left_ms > 0:
                    self._reactions[connection] = min(left_ms, self._reactions.get(connection, left_ms))
            else:
                heapq.heappush(self._queue, (row["timestamp"], 0, number))
            last_times[connection] = number

    def _send(self, number: int, row: Row, now_ms: int) -> None:
        whole, part = size_of(row), self._left[number]
        if row["api_key"] == FETCH:
            part = min(part, self._most(row))
        share = part / whole if part < whole else 1.0
        decision, refused = self._cluster.decide(row, part, now_ms, share=0.0 if number in self._repeated else share)
        entity = row["user"], row["client_id"]
        self.late_ms[entity] = max(self.late_ms[entity], now_ms - row["timestamp"])
        wait_ms = decision.throttle_time_ms
        if decision.throttled_by is not None:
            self.throttled[*entity, decision.throttled_by.label] += 1
            self.throttled_ms[*entity, decision.throttled_by.label] += wait_ms
        self.refused[entity] += refused
        self.refused_mutations[entity] += part * refused
        if decision.unrecord_fetch:
            self._cluster.give_back(row, part, now_ms)
        if refused or decision.throttled_by is not None:
            wait_ms += self._reactions.get(_connection(row), 1)
        self._repeated.discard(number)
        if refused and self._bound(row, QuotaType.CONTROLLER_MUTATION) == 0.0:
            self._give_up(number)
        elif refused or decision.unrecord_fetch:
            self._repeated.add(number)
            heapq.heappush(self._queue, (now_ms + wait_ms, 0, number))
        elif row["api_key"] == FETCH and self._left[number] > part:
            self._left[number] -= part
            heapq.heappush(self._queue, (now_ms, 0, number))
        else:
            self._answered(number, row, now_ms, wait_ms)

    def _answered(self, number: int, row: Row, now_ms: int, wait_ms: int) -> None:
        if row["network_time_ms"]:
            heapq.heappush(self._queue, (now_ms + row["completed"] - row["timestamp"], 1, number))
        if number in self._next:
            following = self._next[number]
            think_ms = self._rows[following]["timestamp"] - row["timestamp"] - row["throttle_ms"]
            heapq.heappush(self._queue, (now_ms + max(0, think_ms, wait_ms), 0, following))

    def _most(self, row: Row) -> int:
        bound = self._bound(row, QuotaType.FETCH)
        return 1 << 62 if bound is None else max(1, int(bound * 10))

    def _bound(self, row: Row, kind: QuotaType) -> float | None:
        return self.candidate.tables()[kind].decide(row["user"], row["client_id"]).bound

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
