"""Our quota managers behind the operations of `java/ManagerSession.java`."""

from tests.differential import figures
from tests.differential.wire import Word, bits, flag, quote

from quotascope.metrics import (
    DEFAULT,
    UNBOUNDED,
    DefaultType,
    KafkaMetric,
    KafkaRelease,
    ManagerConfig,
    MutationApi,
    MutationQuota,
    Principal,
    QuotaConfig,
    QuotaEntity,
    QuotaManagers,
    QuotaType,
    Registry,
    StrictMutationQuota,
    ThrottleCallback,
    ThrottlingQuotaExceeded,
)

OURS = ("throttle-time-total", "throttle-count", "rejection-count")
"""Metrics that Kafka lacks; that they are left out here and everything else is equal shows that they change nothing."""
OUR_SENSOR = "ControllerMutationRejection-"
TYPES = (
    QuotaType.PRODUCE,
    QuotaType.FETCH,
    QuotaType.REQUEST,
    QuotaType.CONTROLLER_MUTATION,
)


class Channel(ThrottleCallback):
    """A throttled channel that reports to the twin what happens to it."""

    def __init__(self, twin: "ManagerTwin", deadline_ms: int) -> None:
        self._twin = twin
        self._deadline_ms = deadline_ms

    def start_throttling(self) -> None:
        """Count the start."""
        self._twin.started += 1

    def end_throttling(self) -> None:
        """Note the deadline."""
        self._twin.ended.append(str(self._deadline_ms))


class ManagerTwin:
    """The four managers of a node, with two clocks and the quotas of requests that are under way."""

    def __init__(
        self, origin_ms: int, client: tuple[int, int], controller: tuple[int, int], release: KafkaRelease
    ) -> None:
        self._now_ms = origin_ms
        self._monotonic_ms = 0
        self._registry = Registry()
        self._managers = QuotaManagers(
            self._registry,
            origin_ms,
            QuotaConfig(
                client=ManagerConfig(samples=client[0], window_seconds=client[1], release=release),
                controller=ManagerConfig(samples=controller[0], window_seconds=controller[1], release=release),
            ),
        )
        self._quotas: dict[str, MutationQuota] = {}
        self.started = 0
        self.ended: list[str] = []

    def step(self, ms: int) -> None:
        """Move the wall clock, and the monotonic one if it is forward."""
        self._now_ms += ms
        self._monotonic_ms += max(ms, 0)

    def update(self, key: str, user: str | None, client_id: str | None, bound: float | None) -> str:
        """Set or remove a quota; answer the level flags of all types."""
        quota_type = QuotaType.of_quota_key(key)
        assert quota_type is not None
        self._managers.update_quota(quota_type, QuotaEntity(_name(user), _name(client_id)), bound)
        return "".join(str(self._managers.of(each).rules().flags) for each in TYPES)

    def record(self, quota_type: str, user: str, client_id: str, value: float) -> str:
        """Record and answer the throttle time."""
        manager = self._managers.of(QuotaType(quota_type))
        return str(manager.maybe_record_and_get_throttle_time(Principal(user), client_id, value, self._now_ms))

    def uncheck(self, quota_type: str, user: str, client_id: str, value: float) -> None:
        """Record without a check."""
        manager = self._managers.of(QuotaType(quota_type))
        manager.record_no_throttle(Principal(user), client_id, value, self._now_ms)

    def unrecord(self, quota_type: str, user: str, client_id: str, value: float) -> None:
        """Take back."""
        self._managers.of(QuotaType(quota_type)).unrecord(Principal(user), client_id, value, self._now_ms)

    def most(self, quota_type: str, user: str, client_id: str) -> str:
        """Ask for the most that one fetch may return."""
        manager = self._managers.of(QuotaType(quota_type))
        return bits(manager.max_value_in_quota_window(Principal(user), client_id, self._now_ms))

    def limit(self, quota_type: str, user: str, client_id: str) -> str:
        """Ask for the bound; the rule that decides must say the same."""
        manager = self._managers.of(QuotaType(quota_type))
        bound = manager.quota(Principal(user), client_id).bound
        decided = manager.decide(Principal(user), client_id).bound
        return bits(bound) if decided in (None, bound) else f"decided {decided}, quota {bound}"

    def tags(self, quota_type: str, user: str, client_id: str) -> str:
        """Ask under which tags a request is measured."""
        manager = self._managers.of(QuotaType(quota_type))
        user_tag, client_tag = manager.rules().metric_tags(user, client_id)
        return f"{quote(Principal(user_tag).sanitized)} {quote(client_tag)}"

    def enabled(self, quota_type: str) -> str:
        """Ask whether anything is recorded."""
        return flag(self._managers.of(QuotaType(quota_type)).quotas_enabled)

    def request(self, user: str, client_id: str, handler_ns: int, network_ns: int) -> str:
        """A request whose handler took some time, then the network thread some more if a quota listened."""
        manager, principal = self._managers.request, Principal(user)
        listens = manager.quotas_enabled
        throttle_ms = manager.maybe_record_request(principal, client_id, handler_ns, self._now_ms)
        if listens:
            manager.record_network_thread_time(principal, client_id, network_ns, self._now_ms)
        return f"{throttle_ms} {flag(listens)}"

    def exempt(self, handler_ns: int, network_ns: int) -> str:
        """The same for a request that no quota applies to."""
        manager = self._managers.request
        listens = manager.quotas_enabled
        manager.maybe_record_exempt(handler_ns, self._now_ms)
        if listens:
            manager.record_exempt(network_ns, self._now_ms)
        return flag(listens)

    def throttle(self, quota_type: str, user: str, client_id: str, throttle_ms: int) -> None:
        """Mute a channel."""
        self._managers.of(QuotaType(quota_type)).throttle(
            Principal(user),
            client_id,
            throttle_ms,
            Channel(self, self._monotonic_ms + throttle_ms),
            now_ms=self._now_ms,
            now_ns=self._monotonic_ms * 1_000_000,
        )

    def reap(self, quota_type: str) -> str:
        """One turn of the reaper."""
        manager = self._managers.of(QuotaType(quota_type))
        manager.reap(self._now_ms, self._monotonic_ms * 1_000_000)
        answer = f"{self.started} {len(manager.reaper.queue)} [{','.join(self.ended)}]"
        self.ended.clear()
        return answer

    def mutation(self, number: str, mode: str, user: str, client_id: str) -> str:
        """Make the quota of a controller request."""
        manager, principal = self._managers.controller_mutation, Principal(user)
        if mode == "strict":
            quota = manager.strict_quota_for(principal, client_id, self._now_ms)
        elif mode == "permissive":
            quota = manager.permissive_quota_for(principal, client_id, self._now_ms)
        else:
            quota = manager.quota_for(principal, client_id, MutationApi.CREATE_TOPICS, int(mode), self._now_ms)
        self._quotas[number] = quota
        if quota is UNBOUNDED:
            return "Unbounded"
        return "Strict" if isinstance(quota, StrictMutationQuota) else "Permissive"

    def charge(self, number: str, permits: float) -> str:
        """Charge such a quota."""
        if number not in self._quotas:
            return "never made"
        try:
            self._quotas[number].record(permits, self._now_ms)
        except ThrottlingQuotaExceeded as error:
            return f"rejected {error.throttle_time_ms}"
        return "ok"

    def left(self, number: str) -> str:
        """Ask such a quota for the throttle time that is left."""
        if number not in self._quotas:
            return "never made"
        quota = self._quotas[number]
        return f"{quota.throttle_time_ms(self._now_ms)} {flag(quota.is_exceeded)}"

    def expire(self) -> None:
        """Remove what has expired."""
        self._registry.expire_sensors(self._now_ms)

    def dump(self) -> str:
        """Write all sensors and all metrics that Kafka has too."""
        sensors = sorted(name for name in self._registry.sensors() if not name.startswith(OUR_SENSOR))
        metrics = [metric for metric in self._registry.metrics().values() if _is_kafkas(metric)]
        return f"[{','.join(map(quote, sensors))}] {figures.everything(metrics, self._now_ms)}"


def _is_kafkas(metric: KafkaMetric) -> bool:
    return metric.name.name not in OURS and metric.name.group != "kafka-metrics-count"


def _name(token: str | None) -> str | DefaultType | None:
    return DEFAULT if isinstance(token, Word) else token
