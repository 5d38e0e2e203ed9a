"""Brokers and a controller of the real engine, driven as a replay drives its kernels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    ClientQuotaManager,
    ControllerMutationQuotaManager,
    Decision,
    MutationApi,
    Principal,
    QuotaType,
    Registry,
    RequestQuotaManager,
    ThrottlingQuotaExceeded,
    combine_controller,
    combine_fetch,
    combine_produce,
    combine_request,
)
from quotascope.quotas.candidates import Candidate

PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What a broker decides on a request."""

    own_ms: int
    request_ms: int
    decision: Decision
    refused: bool = False


@dataclass
class Cluster:
    """The quota managers of each broker, and of the controller."""

    candidate: Candidate
    brokers: dict[tuple[str, QuotaType], ClientQuotaManager] = field(default_factory=dict)

    def manager(self, broker: str, kind: QuotaType) -> Any:
        """The manager of a broker; of mutations there is one for all."""
        where = "controller" if kind is QuotaType.CONTROLLER_MUTATION else broker
        if (where, kind) not in self.brokers:
            self.brokers[where, kind] = self._made(kind)
        return self.brokers[where, kind]

    def _made(self, kind: QuotaType) -> ClientQuotaManager:
        manager: ClientQuotaManager
        if kind is QuotaType.CONTROLLER_MUTATION:
            manager = ControllerMutationQuotaManager(Registry(), EPOCH_MS)
        elif kind is QuotaType.REQUEST:
            manager = RequestQuotaManager(Registry(), EPOCH_MS)
        else:
            manager = ClientQuotaManager(Registry(), kind, EPOCH_MS)
        for entity, bound in self.candidate.tables()[kind].items():
            manager.update_quota(entity, bound)
        return manager

    def decide(self, row: Row, size: int, now_ms: int, *, wait_ms: int = 0, share: float = 1.0) -> Verdict:
        """Charge a request and decide; a Fetch that is throttled is given back."""
        client = Principal(row["user"]), row["client_id"]
        request_ms = self._time(row, client, now_ms, share)
        if row["api_key"] == CREATE_TOPICS:
            own_ms, refused = self._mutate(row, client, size, now_ms, wait_ms)
            decision = combine_controller(own_ms, request_ms)
            return Verdict(own_ms, request_ms, decision, refused)
        if row["api_key"] == PRODUCE:
            own_ms = self._bytes(row, QuotaType.PRODUCE, client, size, now_ms)
            return Verdict(own_ms, request_ms, combine_produce(own_ms, request_ms, acks=1))
        if row["api_key"] == FETCH:
            own_ms = self._bytes(row, QuotaType.FETCH, client, size, now_ms)
            return Verdict(own_ms, request_ms, combine_fetch(own_ms, request_ms))
        return Verdict(0, request_ms, combine_request(request_ms))

    def give_back(self, row: Row, size: int, now_ms: int) -> None:
        """Un-record a Fetch that is answered empty."""
        manager = self.manager(row["broker"], QuotaType.FETCH)
        if manager.quotas_enabled:
            client = Principal(row["user"]), row["client_id"]
            manager.unrecord(*client, float(size), now_ms)

    def network(self, row: Row, now_ms: int) -> None:
        """Charge the network thread's time."""
        manager = self.manager(row["broker"], QuotaType.REQUEST)
        if row["network_time_ms"] and manager.quotas_enabled:
            ns = round(row["network_time_ms"] * 1e6)
            client = Principal(row["user"]), row["client_id"]
            manager.record_network_thread_time(*client, ns, now_ms)

    def _time(self, row: Row, client: tuple[Principal, str], now_ms: int, share: float) -> int:
        if row["thread_time_ms"] is None:
            return 0
        manager = self.manager(row["broker"], QuotaType.REQUEST)
        ns = round(row["thread_time_ms"] * 1e6)
        if share == 1.0:
            return int(manager.maybe_record_request(*client, ns, now_ms))
        percent = ns * (100.0 / 1e9) * share
        return int(manager.maybe_record_and_get_throttle_time(*client, percent, now_ms))

    def _bytes(self, row: Row, kind: QuotaType, client: tuple[Principal, str], size: int, now_ms: int) -> int:
        manager = self.manager(row["broker"], kind)
        return int(manager.maybe_record_and_get_throttle_time(*client, float(size), now_ms))

    def _mutate(
        self, row: Row, client: tuple[Principal, str], size: int, now_ms: int, wait_ms: int
    ) -> tuple[int, bool]:
        manager = self.manager(row["broker"], QuotaType.CONTROLLER_MUTATION)
        api = MutationApi.CREATE_TOPICS
        at_ms = now_ms - wait_ms
        quota = manager.quota_for(*client, api, row["api_version"], at_ms)
        try:
            quota.record(float(size), at_ms)
        except ThrottlingQuotaExceeded:
            return quota.throttle_time_ms(now_ms), True
        return quota.throttle_time_ms(now_ms), False
