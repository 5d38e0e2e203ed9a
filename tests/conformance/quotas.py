"""Vectors about quotas: managers, controllers, reapers, replication, tiered storage, connections, and what a KRaft controller stores."""

from tests.conformance import expectations, settings
from tests.conformance.fields import Fields, Malformed, Runner, Unmet, as_integer, as_text

from quotascope.metrics import (
    DEFAULT,
    UNBOUNDED,
    ByteRateQuota,
    ClientQuotaManager,
    ClientSensors,
    ConnectionQuotas,
    ConnectionThrottled,
    ControllerMutationQuotaManager,
    Decision,
    DefaultType,
    EntityTags,
    KafkaRelease,
    MalformedName,
    ManagerConfig,
    MetricConfig,
    MetricName,
    MutationQuota,
    PermissiveMutationQuota,
    Principal,
    Quota,
    QuotaEntity,
    QuotaType,
    Registry,
    ReplicationQuotaManager,
    ReplicationQuotaType,
    RequestQuotaManager,
    RLMQuotaManager,
    RLMQuotaType,
    StrictMutationQuota,
    ThrottleCallback,
    ThrottledChannel,
    ThrottledChannelReaper,
    ThrottlingQuotaExceeded,
    TokenBucket,
    WindowConfig,
    combine_controller,
    combine_fetch,
    combine_forwarded_response,
    combine_produce,
    combine_request,
    desanitize,
    validate_alteration,
)
from quotascope.metrics.protocol import ErrorCode

NANOS_PER_MS = 1_000_000
RATES = {
    QuotaType.PRODUCE: "byte-rate",
    QuotaType.FETCH: "byte-rate",
    QuotaType.REQUEST: "request-time",
    QuotaType.CONTROLLER_MUTATION: "mutation-rate",
}
"""Names of the metrics that show how much a client uses."""


class QuotaManagerRunner(Runner):
    """Sets quotas, records what clients use, throttles them and ends their throttles."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._registry = Registry()
        self._callbacks = Callbacks()
        windows = ManagerConfig(
            samples=config.integer("samples", 11), window_seconds=config.integer("window_s", 1), release=release
        )
        name = config.text("type")
        if name not in [quota_type.value for quota_type in QuotaType]:
            raise Malformed(f"unknown quota type {name!r:.60}")
        self._manager = self._made(QuotaType(name), windows)

    def _made(self, quota_type: QuotaType, config: ManagerConfig) -> ClientQuotaManager:
        if quota_type is QuotaType.REQUEST:
            return RequestQuotaManager(self._registry, self._origin_ms, config)
        if quota_type is QuotaType.CONTROLLER_MUTATION:
            return ControllerMutationQuotaManager(self._registry, self._origin_ms, config)
        return ClientQuotaManager(self._registry, quota_type, self._origin_ms, config)

    def op_update_quota(self, step: Fields) -> None:
        """Set the quota of an entity, or remove it."""
        user, client_id = step.optional_text("user"), step.optional_text("client_id")
        entity = QuotaEntity(_named(user and _decoded(user)), _named(client_id))
        bound = step.raw("bound")
        self._manager.update_quota(entity, None if bound is None else float(step.number("bound")))

    def op_record(self, step: Fields) -> None:
        """Record, if any quota exists."""
        value = float(step.number("value"))
        throttle_ms = self._manager.maybe_record_and_get_throttle_time(*_who(step), value, self.now_ms(step))
        expectations.number(step, throttle_ms, "expect_throttle_ms")
        expectations.flag(step, throttle_ms > 0, "expect_throttled")

    def op_unrecord(self, step: Fields) -> None:
        """Take back."""
        value = float(step.number("value"))
        self._manager.unrecord(*_who(step), value, self.now_ms(step))

    def op_throttle(self, step: Fields) -> None:
        """Mute a channel; whose it is hardly matters and may be left out."""
        now_ms = self.now_ms(step)
        self._manager.throttle(
            Principal.from_sanitized(step.text("user", "ANONYMOUS")),
            step.text("client_id", ""),
            step.integer("throttle_ms"),
            self._callbacks,
            now_ms=now_ms,
            now_ns=now_ms * NANOS_PER_MS,
        )
        self._expect_queue(step, now_ms)

    def op_reap(self, step: Fields) -> None:
        """One turn of the reaper; callbacks are counted from the start."""
        now_ms = self.now_ms(step)
        self._manager.reap(now_ms, now_ms * NANOS_PER_MS)
        self._expect_queue(step, now_ms)

    def op_quota(self, step: Fields) -> None:
        """Ask for the bound of a request."""
        expectations.number(step, self._manager.quota(*_who(step)).bound)

    def op_max_value_in_window(self, step: Fields) -> None:
        """Ask for the most that one fetch may return."""
        most = self._manager.max_value_in_quota_window(*_who(step), self.now_ms(step))
        expectations.number(step, most)

    def op_tags(self, step: Fields) -> None:
        """Ask under which tags a request is measured."""
        tags = self._tags(step)
        if "expect" in step:
            expectations.same(tags, step.raw("expect"), "tags")

    def op_rate(self, step: Fields) -> None:
        """Read how much a client uses."""
        quota_type = self._manager.quota_type
        name = self._registry.metric_name(RATES[quota_type], quota_type.group, self._tags(step))
        metric = self._registry.metric(name)
        if metric is None:
            raise Unmet(f"a metric {name}, got none")
        expectations.number(step, metric.value(self.now_ms(step)))

    def op_quotas_enabled(self, step: Fields) -> None:
        """Ask whether anything is recorded."""
        expectations.flag(step, self._manager.quotas_enabled)

    def op_sensor_exists(self, step: Fields) -> None:
        """Ask whether a sensor exists."""
        sensor = self._registry.get_sensor(step.text("name"))
        expectations.flag(step, sensor is not None)

    def op_expire(self, step: Fields) -> None:
        """Remove the sensors that have expired."""
        self._registry.expire_sensors(self.now_ms(step))

    def _tags(self, step: Fields) -> dict[str, str]:
        principal, client_id = _who(step)
        user, client_tag = self._manager.rules().metric_tags(principal.name, client_id)
        return {"user": principal.sanitized if user else "", "client-id": client_tag}

    def _expect_queue(self, step: Fields, now_ms: int) -> None:
        name = self._registry.metric_name("queue-size", self._manager.quota_type.group)
        size = self._registry.metrics()[name].value(now_ms)
        expectations.number(step, size, "expect_queue_size")
        expectations.number(step, self._callbacks.ended, "expect_callbacks")


def _who(step: Fields) -> tuple[Principal, str]:
    """The user, given as its tag, and the client-id of a request."""
    user, client_id = step.text("user"), step.text("client_id")
    try:
        return Principal.from_sanitized(user), client_id
    except MalformedName as error:
        raise Malformed(f"'user' is no sanitized name: {error}") from None


def _decoded(user: str) -> str:
    try:
        return desanitize(user)
    except MalformedName as error:
        raise Malformed(f"'user' is no sanitized name: {error}") from None


def _named(name: str | None) -> str | DefaultType | None:
    return DEFAULT if name == "<default>" else name


class ControllerQuotaRunner(Runner):
    """Charges mutations to a strict, a permissive or an unbounded quota over one token bucket."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        metric = settings.config(config)
        sensors = _sensors(metric, self._origin_ms)
        self._quota = _quota(config.text("mode"), sensors, release)

    def op_record(self, step: Fields) -> None:
        """Charge."""
        try:
            self._quota.record(float(step.number("value")), self.now_ms(step))
        except ThrottlingQuotaExceeded:
            expectations.flag(step, True, "expect_rejected")  # noqa: FBT003 - the value itself
        else:
            expectations.flag(step, False, "expect_rejected")  # noqa: FBT003

    def op_is_exceeded(self, step: Fields) -> None:
        """Ask whether a mutation was refused."""
        expectations.flag(step, self._quota.is_exceeded)

    def op_throttle_time(self, step: Fields) -> None:
        """Ask for the ms that are left."""
        throttle_ms = self._quota.throttle_time_ms(self.now_ms(step))
        expectations.number(step, throttle_ms)


def _sensors(metric: MetricConfig, now_ms: int) -> ClientSensors:
    registry = Registry()
    sensor = registry.sensor("quota", now_ms)
    sensor.add(MetricName("tokens", ""), TokenBucket(), metric)
    return ClientSensors(EntityTags("", "", ""), sensor, registry.sensor("throttle-time", now_ms))


def _quota(mode: str, sensors: ClientSensors, release: KafkaRelease) -> MutationQuota:
    match mode:
        case "strict":
            return StrictMutationQuota(sensors, ManagerConfig(release=release))
        case "permissive":
            return PermissiveMutationQuota(sensors, ManagerConfig(release=release))
        case "unbounded":
            return UNBOUNDED
        case _:
            raise Malformed(f"unknown mode {mode!r:.60}")


class Callbacks(ThrottleCallback):
    """Counts what is reported to channels."""

    def __init__(self) -> None:
        self.started = 0
        self.ended = 0

    def start_throttling(self) -> None:
        """One more throttle."""
        self.started += 1

    def end_throttling(self) -> None:
        """One throttle less."""
        self.ended += 1


class ReaperRunner(Runner):
    """Throttles channels at the start and ends their throttles in turn."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._callbacks = Callbacks()
        self._reaper = ThrottledChannelReaper(Registry(), QuotaType.PRODUCE, self._origin_ms)
        for throttle_ms in config.several("throttle_ms", as_integer):
            self._reaper.throttle(
                throttle_ms, self._callbacks, now_ms=self._origin_ms, now_ns=self._origin_ms * NANOS_PER_MS
            )

    def op_started(self, step: Fields) -> None:
        """Ask how many throttles have started."""
        expectations.number(step, self._callbacks.started)

    def op_reap(self, step: Fields) -> None:
        """One turn; callbacks are counted from the start."""
        now_ms = self.now_ms(step)
        self._reaper.reap(now_ms, now_ms * NANOS_PER_MS)
        expectations.number(step, self._callbacks.ended, "expect_callbacks")
        expectations.number(step, len(self._reaper.queue), "expect_queue_size")


class ThrottledChannelRunner(Runner):
    """Asks throttled channels how long they have to wait."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        now_ns = self._origin_ms * NANOS_PER_MS
        self._channels = [
            ThrottledChannel(throttle_ms, Callbacks(), now_ns)
            for throttle_ms in config.several("throttle_ms", as_integer)
        ]

    def op_delay_ms(self, step: Fields) -> None:
        """Ask all of them, in the order they were made."""
        now_ns = self.now_ms(step) * NANOS_PER_MS
        delays = [channel.delay_ms(now_ns) for channel in self._channels]
        if "expect" in step:
            expectations.same(delays, step.several("expect", as_integer), "delays")


class RequestCombinationRunner(Runner):
    """Decides about responses."""

    def op_combine(self, step: Fields) -> None:
        """Decide where the request is answered by the node that got it."""
        match step.text("api"):
            case "Produce":
                decision = combine_produce(
                    step.integer("bandwidth_ms"), step.integer("request_ms"), acks=step.integer("acks", -1)
                )
            case "Fetch" | "ShareFetch":
                decision = combine_fetch(step.integer("bandwidth_ms"), step.integer("request_ms"))
            case _:
                decision = combine_request(step.integer("request_ms"), forwarded=step.flag("forwarded", default=False))
        _expect(step, decision)

    def op_combine_controller(self, step: Fields) -> None:
        """Decide on the node that ran a mutation."""
        decision = combine_controller(
            step.integer("controller_ms"), step.integer("request_ms"), forwarded=step.flag("forwarded", default=False)
        )
        _expect(step, decision)

    def op_combine_forwarded(self, step: Fields) -> None:
        """Decide on the broker that forwarded a request."""
        decision = combine_forwarded_response(step.integer("controller_ms"), step.integer("request_ms"))
        _expect(step, decision)


def _expect(step: Fields, decision: Decision) -> None:
    expected = step.fields("expect", {})
    actual = {
        "throttled_by": decision.throttled_by and decision.throttled_by.value,
        "throttle_ms": decision.throttle_time_ms,
        "response_ms": decision.response_ms,
        "unrecord_fetch": decision.unrecord_fetch,
    }
    for key, value in actual.items():
        if key in expected:
            expectations.same(value, expected.raw(key), key)
    expected.done()


class ReplicationQuotaRunner(Runner):
    """Records into the leader's quota and asks whether it is exceeded."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._registry = Registry()
        self._manager = ReplicationQuotaManager(self._registry, ReplicationQuotaType.LEADER, _windows_of(config))

    def op_update_quota(self, step: Fields) -> None:
        """Set the bound."""
        _update(self._manager, step)

    def op_record(self, step: Fields) -> None:
        """Record bytes."""
        self._manager.record(float(step.number("value")), self.now_ms(step))

    def op_is_exceeded(self, step: Fields) -> None:
        """Ask whether the rate is past its bound."""
        expectations.flag(step, self._manager.is_quota_exceeded(self.now_ms(step)))

    def op_rate(self, step: Fields) -> None:
        """Read the rate."""
        metric = self._registry.metrics()[self._manager.metric_name]
        expectations.number(step, metric.value(self.now_ms(step)))


class RLMQuotaRunner(Runner):
    """Records into the quota of copies to tiered storage and asks for the wait."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._manager = RLMQuotaManager(Registry(), RLMQuotaType.COPY, config.integer("bound"), _windows_of(config))

    def op_update_quota(self, step: Fields) -> None:
        """Set the bound."""
        _update(self._manager, step)

    def op_record(self, step: Fields) -> None:
        """Record bytes."""
        self._manager.record(float(step.number("value")), self.now_ms(step))

    def op_throttle_time(self, step: Fields) -> None:
        """Ask for the wait in ms."""
        expectations.number(step, self._manager.throttle_time_ms(self.now_ms(step)))


def _windows_of(config: Fields) -> WindowConfig:
    return WindowConfig(samples=config.integer("samples"), window_seconds=config.integer("window_s"))


def _update(manager: ByteRateQuota, step: Fields) -> None:
    manager.update_quota(Quota(float(step.number("bound"))))


IP, LISTENER = "10.0.0.1", "CLIENT"


class ConnectionIpQuotaRunner(Runner):
    """Opens connections until one is refused."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        windows = WindowConfig(samples=config.integer("samples"), window_seconds=config.integer("window_s"))
        self._registry = Registry()
        self._quotas = ConnectionQuotas(self._registry, self._origin_ms, windows)
        self._quotas.add_listener(LISTENER, self._origin_ms)
        self._throttle_ms = 0

    def op_set_ip_quota(self, step: Fields) -> None:
        """Limit the address."""
        self._quotas.update_ip_rate(IP, step.integer("bound"))

    def op_connect(self, step: Fields) -> None:
        """Open up to `count` connections at once."""
        now_ms = self.now_ms(step)
        accepted = 0
        while accepted < step.integer("count") and self._is_admitted(now_ms):
            accepted += 1
        expectations.number(step, accepted, "expect_accepted")

    def op_rate(self, step: Fields) -> None:
        """Read the rate of the address, and of its listener, which is the same."""
        for tags in ({"ip": IP}, {"listener": LISTENER}):
            name = self._registry.metric_name("connection-accept-rate", "socket-server-metrics", tags)
            value = self._registry.metrics()[name].value(self.now_ms(step))
            expectations.number(step, value)

    def op_last_throttle_ms(self, step: Fields) -> None:
        """Compare how long the last refused connection is kept open."""
        expectations.number(step, self._throttle_ms)

    def _is_admitted(self, now_ms: int) -> bool:
        self._quotas.accept(LISTENER, now_ms)
        try:
            self._quotas.admit(LISTENER, IP, now_ms)
        except ConnectionThrottled as refusal:
            self._throttle_ms = refusal.throttle_time_ms
            return False
        return True


class QuotaValidationRunner(Runner):
    """Validates alterations of one key."""

    def op_validate(self, step: Fields) -> None:
        """Compare the error, `NONE` for an alteration that is stored."""
        raw = step.raw("entity")
        entity = step.fields("entity")
        kinds = list(raw) if isinstance(raw, dict) else []
        names = {as_text(kind): entity.optional_text(kind) for kind in kinds}
        changes = [(step.text("key"), float(step.number("value")))]
        found = validate_alteration(names, changes, release=self._release)
        codes = {each.error_code for each in found}
        expectations.text(step, "+".join(ErrorCode(code).name for code in codes) or "NONE")
