"""Vectors about a quota manager."""

from tests.conformance import expectations
from tests.conformance.failures import Malformed, Unmet
from tests.conformance.fields import Fields
from tests.conformance.reaper import Callbacks
from tests.conformance.runner import Runner

from quotascope.metrics import (
    DEFAULT,
    ClientQuotaManager,
    ControllerMutationQuotaManager,
    DefaultType,
    KafkaRelease,
    MalformedName,
    ManagerConfig,
    Principal,
    QuotaEntity,
    QuotaType,
    Registry,
    RequestQuotaManager,
    desanitize,
)

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
            samples=config.integer("samples", 11),
            window_seconds=config.integer("window_s", 1),
            release=release,
        )
        name = config.text("type")
        if name not in [quota_type.value for quota_type in QuotaType]:
            raise Malformed(f"unknown quota type {name!r:.60}")
        self._manager = self._made(QuotaType(name), windows)

    def _made(self, quota_type: QuotaType, config: ManagerConfig) -> ClientQuotaManager:
        if quota_type is QuotaType.REQUEST:
            return RequestQuotaManager(self._registry, self._origin_ms, config)
        if quota_type is QuotaType.CONTROLLER_MUTATION:
            return ControllerMutationQuotaManager(
                self._registry, self._origin_ms, config
            )
        return ClientQuotaManager(self._registry, quota_type, self._origin_ms, config)

    def op_update_quota(self, step: Fields) -> None:
        """Set the quota of an entity, or remove it."""
        user, client_id = step.optional_text("user"), step.optional_text("client_id")
        entity = QuotaEntity(_named(user and _decoded(user)), _named(client_id))
        bound = step.raw("bound")
        self._manager.update_quota(
            entity, None if bound is None else float(step.number("bound"))
        )

    def op_record(self, step: Fields) -> None:
        """Record, if any quota exists."""
        value = float(step.number("value"))
        throttle_ms = self._manager.maybe_record_and_get_throttle_time(
            *_who(step), value, self.now_ms(step)
        )
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
        name = self._registry.metric_name(
            RATES[quota_type], quota_type.group, self._tags(step)
        )
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
