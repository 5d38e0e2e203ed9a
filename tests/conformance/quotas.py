"""Vectors about quotas: managers, controllers, reapers, replication, tiered storage, connections, KRaft's records."""

from collections.abc import Mapping
from typing import Annotated

from tests.conformance.fields import Answers, Malformed, Runner, Unmet, read, refuse_unknown
from tests.conformance.settings import Config

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.client_sensors import ClientSensors, EntityTags
from quotascope.metrics.engine.combination import (
    Decision,
    combine_controller,
    combine_fetch,
    combine_forwarded_response,
    combine_produce,
    combine_request,
)
from quotascope.metrics.engine.controller_mutation import ControllerMutationQuotaManager
from quotascope.metrics.engine.delay_queue import ThrottledChannel
from quotascope.metrics.engine.errors import ConnectionThrottled, ThrottlingQuotaExceeded
from quotascope.metrics.engine.extras.connection_quotas import ConnectionQuotas
from quotascope.metrics.engine.extras.replication_quotas import ReplicationQuotaManager
from quotascope.metrics.engine.extras.tiered_storage import RLMQuotaManager
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.mutation_quota import (
    UNBOUNDED,
    MutationQuota,
    PermissiveMutationQuota,
    StrictMutationQuota,
)
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.reaper import ThrottledChannelReaper
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.request_quota_manager import RequestQuotaManager
from quotascope.metrics.engine.throttle_callback import ThrottleCallback
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import DEFAULT, DefaultType, QuotaEntity, QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.node_quota_types import ReplicationQuotaType, RLMQuotaType
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.protocol import ErrorCode
from quotascope.metrics.kafka.validation import validate_alteration
from quotascope.metrics.kafka.windows import WindowConfig

NANOS_PER_MS = 1_000_000
RATES = {
    QuotaType.PRODUCE: "byte-rate",
    QuotaType.FETCH: "byte-rate",
    QuotaType.REQUEST: "request-time",
    QuotaType.CONTROLLER_MUTATION: "mutation-rate",
}
"""Names of the metrics that show how much a client uses."""


class Callbacks(ThrottleCallback):
    def __init__(self) -> None:
        self.started = 0
        self.ended = 0

    def start_throttling(self) -> None:
        self.started += 1

    def end_throttling(self) -> None:
        self.ended += 1


def _principal(value: object) -> Principal:
    try:
        return Principal.from_sanitized(read(str, value))
    except MalformedName as error:
        raise Malformed(f"no sanitized name: {error}") from None


User = Annotated[Principal, _principal]
"""A user, given as its tag."""


class QuotaManagerRunner(Runner):
    def _begin(self, type: str, samples: int = 11, window_s: int = 1) -> None:  # noqa: A002 - a key of a config
        if type not in [quota_type.value for quota_type in QuotaType]:
            raise Malformed(f"unknown quota type {type!r:.60}")
        windows = ManagerConfig(samples=samples, window_seconds=window_s, release=self._release)
        self._registry, self._callbacks = Registry(), Callbacks()
        self._manager: ClientQuotaManager
        match quota_type := QuotaType(type):
            case QuotaType.REQUEST:
                self._manager = RequestQuotaManager(self._registry, self._origin_ms, windows)
            case QuotaType.CONTROLLER_MUTATION:
                self._manager = ControllerMutationQuotaManager(self._registry, self._origin_ms, windows)
            case _:
                self._manager = ClientQuotaManager(self._registry, quota_type, self._origin_ms, windows)

    def _op_update_quota(self, user: str | None, client_id: str | None, bound: float | None) -> None:
        name = user if user in (None, "<default>") else _principal(user).name
        self._manager.update_quota(QuotaEntity(_named(name), _named(client_id)), bound)

    def _op_record(self, user: User, client_id: str, value: float) -> Answers:
        throttle_ms = self._manager.maybe_record_and_get_throttle_time(user, client_id, value, self._now_ms)
        return Answers(expect_throttle_ms=throttle_ms, expect_throttled=throttle_ms > 0)

    def _op_unrecord(self, user: User, client_id: str, value: float) -> None:
        self._manager.unrecord(user, client_id, value, self._now_ms)

    def _op_throttle(
        self,
        throttle_ms: int,
        user: User = Principal("ANONYMOUS"),  # noqa: B008 - immutable
        client_id: str = "",
    ) -> Answers:
        """Mute a channel, whose name may be left out."""
        now_ns = self._now_ms * NANOS_PER_MS
        self._manager.throttle(user, client_id, throttle_ms, self._callbacks, now_ms=self._now_ms, now_ns=now_ns)
        return self._queue()

    def _op_reap(self) -> Answers:
        """Run one turn of the reaper; callbacks are counted from the start."""
        self._manager.reap(self._now_ms, self._now_ms * NANOS_PER_MS)
        return self._queue()

    def _queue(self) -> Answers:
        name = self._registry.metric_name("queue-size", self._manager.quota_type.group)
        size = self._registry.metrics()[name].value(self._now_ms)
        return Answers(expect_queue_size=size, expect_callbacks=self._callbacks.ended)

    def _op_quota(self, user: User, client_id: str) -> float:
        return self._manager.quota(user, client_id).bound

    def _op_max_value_in_window(self, user: User, client_id: str) -> float:
        return self._manager.max_value_in_quota_window(user, client_id, self._now_ms)

    def _op_tags(self, user: User, client_id: str) -> Mapping[str, str]:
        user_tag, client_tag = self._manager.rules().metric_tags(user.name, client_id)
        return {"user": user.sanitized if user_tag else "", "client-id": client_tag}

    def _op_rate(self, user: User, client_id: str) -> float:
        quota_type = self._manager.quota_type
        name = self._registry.metric_name(RATES[quota_type], quota_type.group, self._op_tags(user, client_id))
        metric = self._registry.metric(name)
        if metric is None:
            raise Unmet(f"a metric {name}, got none")
        return metric.value(self._now_ms)

    def _op_quotas_enabled(self) -> bool:
        return self._manager.quotas_enabled

    def _op_sensor_exists(self, name: str) -> bool:
        return self._registry.get_sensor(name) is not None

    def _op_expire(self) -> None:
        self._registry.expire_sensors(self._now_ms)


def _named(name: str | None) -> str | DefaultType | None:
    return DEFAULT if name == "<default>" else name


class ControllerQuotaRunner(Runner):
    """A runner that charges mutations to a strict, a permissive or an unbounded quota over one token bucket."""

    def _begin(self, mode: str, metric: Config) -> None:
        registry, config = Registry(), ManagerConfig(release=self._release)
        sensor = registry.sensor("quota", self._origin_ms)
        sensor.add(MetricName("tokens", ""), TokenBucket(), metric)
        sensors = ClientSensors(EntityTags("", "", ""), sensor, registry.sensor("throttle-time", self._origin_ms))
        quotas: dict[str, MutationQuota] = {
            "strict": StrictMutationQuota(sensors, config),
            "permissive": PermissiveMutationQuota(sensors, config),
            "unbounded": UNBOUNDED,
        }
        if mode not in quotas:
            raise Malformed(f"unknown mode {mode!r:.60}")
        self._quota = quotas[mode]

    def _op_record(self, value: float) -> Answers:
        try:
            self._quota.record(value, self._now_ms)
        except ThrottlingQuotaExceeded:
            return Answers(expect_rejected=True)
        return Answers(expect_rejected=False)

    def _op_is_exceeded(self) -> bool:
        return self._quota.is_exceeded

    def _op_throttle_time(self) -> int:
        return self._quota.throttle_time_ms(self._now_ms)


class ReaperRunner(Runner):
    """Throttles channels at the start and ends their throttles in turn; callbacks are counted from the start."""

    def _begin(self, throttle_ms: list[int]) -> None:
        self._callbacks = Callbacks()
        self._reaper = ThrottledChannelReaper(Registry(), QuotaType.PRODUCE, self._origin_ms)
        now_ns = self._origin_ms * NANOS_PER_MS
        for throttle in throttle_ms:
            self._reaper.throttle(throttle, self._callbacks, now_ms=self._origin_ms, now_ns=now_ns)

    def _op_started(self) -> int:
        return self._callbacks.started

    def _op_reap(self) -> Answers:
        self._reaper.reap(self._now_ms, self._now_ms * NANOS_PER_MS)
        return Answers(expect_callbacks=self._callbacks.ended, expect_queue_size=len(self._reaper.queue))


class ThrottledChannelRunner(Runner):
    def _begin(self, throttle_ms: list[int]) -> None:
        now_ns = self._origin_ms * NANOS_PER_MS
        self._channels = [ThrottledChannel(throttle, Callbacks(), now_ns) for throttle in throttle_ms]

    def _op_delay_ms(self) -> list[int]:
        return [channel.delay_ms(self._now_ms * NANOS_PER_MS) for channel in self._channels]


class RequestCombinationRunner(Runner):
    """A runner that decides about responses, and compares the expected parts of a decision."""

    def _op_combine(
        self,
        api: str,
        request_ms: int,
        bandwidth_ms: int | None = None,
        acks: int = -1,
        forwarded: bool = False,  # noqa: FBT001, FBT002 - a key of a step
        expect: dict[str, object] | None = None,
    ) -> None:
        """Decide about a request that the receiving node answers."""
        if (bandwidth_ms is None) == (api in ("Produce", "Fetch", "ShareFetch")):
            raise Malformed(f"'bandwidth_ms' is a key of Produce and fetches only, not of {api!r:.60}")
        if bandwidth_ms is None:
            decision = combine_request(request_ms, forwarded=forwarded)
        elif api == "Produce":
            decision = combine_produce(bandwidth_ms, request_ms, acks=acks)
        else:
            decision = combine_fetch(bandwidth_ms, request_ms)
        _compare(decision, expect)

    def _op_combine_controller(
        self,
        controller_ms: int,
        request_ms: int,
        forwarded: bool = False,  # noqa: FBT001, FBT002 - a key of a step
        expect: dict[str, object] | None = None,
    ) -> None:
        """Decide on the node that ran a mutation."""
        _compare(combine_controller(controller_ms, request_ms, forwarded=forwarded), expect)

    def _op_combine_forwarded(
        self, controller_ms: int, request_ms: int, expect: dict[str, object] | None = None
    ) -> None:
        """Decide on the broker that forwarded a request."""
        _compare(combine_forwarded_response(controller_ms, request_ms), expect)


def _compare(decision: Decision, expected: dict[str, object] | None) -> None:
    actual = {
        "throttled_by": decision.throttled_by and decision.throttled_by.value,
        "throttle_ms": decision.throttle_time_ms,
        "response_ms": decision.response_ms,
        "unrecord_fetch": decision.unrecord_fetch,
    }
    expected = expected or {}
    refuse_unknown({key: value for key, value in expected.items() if key not in actual})
    if actual | expected != actual:
        raise Unmet(f"expect {expected}, got {actual}")


class ReplicationQuotaRunner(Runner):
    """A runner that records into the leader's quota and asks if it is exceeded."""

    def _begin(self, samples: int, window_s: int) -> None:
        windows = WindowConfig(samples=samples, window_seconds=window_s)
        self._registry = Registry()
        self._manager = ReplicationQuotaManager(self._registry, ReplicationQuotaType.LEADER, windows)

    def _op_update_quota(self, bound: float) -> None:
        self._manager.update_quota(Quota(bound))

    def _op_record(self, value: float) -> None:
        self._manager.record(value, self._now_ms)

    def _op_is_exceeded(self) -> bool:
        return self._manager.is_quota_exceeded(self._now_ms)

    def _op_rate(self) -> float:
        return self._registry.metrics()[self._manager.metric_name].value(self._now_ms)


class RLMQuotaRunner(Runner):
    """Records into the quota of copies to tiered storage and asks for the wait in ms."""

    def _begin(self, samples: int, window_s: int, bound: int) -> None:
        windows = WindowConfig(samples=samples, window_seconds=window_s)
        self._manager = RLMQuotaManager(Registry(), RLMQuotaType.COPY, bound, windows)

    def _op_update_quota(self, bound: float) -> None:
        self._manager.update_quota(Quota(bound))

    def _op_record(self, value: float) -> None:
        self._manager.record(value, self._now_ms)

    def _op_throttle_time(self) -> int:
        return self._manager.throttle_time_ms(self._now_ms)


IP, LISTENER = "10.0.0.1", "CLIENT"


class ConnectionIpQuotaRunner(Runner):
    def _begin(self, samples: int, window_s: int) -> None:
        windows = WindowConfig(samples=samples, window_seconds=window_s)
        self._registry = Registry()
        self._quotas = ConnectionQuotas(self._registry, self._origin_ms, windows)
        self._quotas.add_listener(LISTENER, self._origin_ms)
        self._throttle_ms = 0

    def _op_set_ip_quota(self, bound: int) -> None:
        self._quotas.update_ip_rate(IP, bound)

    def _op_connect(self, count: int) -> Answers:
        """Open up to `count` connections at once."""
        accepted = 0
        while accepted < count and self._is_admitted():
            accepted += 1
        return Answers(expect_accepted=accepted)

    def _is_admitted(self) -> bool:
        self._quotas.accept(LISTENER, self._now_ms)
        try:
            self._quotas.admit(LISTENER, IP, self._now_ms)
        except ConnectionThrottled as refusal:
            self._throttle_ms = refusal.throttle_time_ms
            return False
        return True

    def _op_rate(self) -> float:
        """Return the rate of the address's listener."""
        of_ip, of_listener = (
            self._registry.metrics()[
                self._registry.metric_name("connection-accept-rate", "socket-server-metrics", tags)
            ].value(self._now_ms)
            for tags in ({"ip": IP}, {"listener": LISTENER})
        )
        if of_ip != of_listener:
            raise Unmet(f"the rate {of_ip!r} of the listener, got {of_listener!r}")
        return of_ip

    def _op_last_throttle_ms(self) -> int:
        """Return the time that the last refused connection is kept open."""
        return self._throttle_ms


class QuotaValidationRunner(Runner):
    """A runner that validates alterations of one key; the error of a stored one is `NONE`."""

    def _op_validate(self, entity: dict[str, str | None], key: str, value: float) -> str:
        problems = validate_alteration(entity, [(key, value)], release=self._release)
        return "+".join(ErrorCode(code).name for code in {problem.error_code for problem in problems}) or "NONE"
