"""Measures clients against their quotas and says how long to throttle them."""

import sys
import threading
from typing import Final

from ..kafka.entities import NO_RULE, DefaultType, QuotaEntity, QuotaType, Resolution
from ..kafka.errors import MalformedName
from ..kafka.numbers import LONG_MAX
from ..kafka.principal import Principal
from ..kafka.rules import CLIENT_ID_FLAG, NO_FLAGS, USER_CLIENT_ID_FLAG, USER_FLAG, QuotaRules, RuleSnapshot
from ..kafka.sanitizer import desanitize, sanitize
from .callback_rules import CallbackRules
from .client_sensors import CLIENT_ID_TAG, USER_TAG, ClientSensors, EntityTags, SensorFactory
from .config import MetricConfig
from .metric import Breach
from .metric_name import MetricName
from .quota import Quota
from .quota_callback import QuotaCallback
from .rate import Rate
from .reaper import ThrottledChannelReaper
from .registry import Registry
from .sensor import Sensor
from .throttle_callback import ThrottleCallback
from .throttle_time import narrow, rate_formula_ms
from .window_config import ManagerConfig, metric_config

UNLIMITED: Final = float(LONG_MAX)
"""The bound of clients without a quota: measured, never in violation."""

_DOUBLE_MAX = sys.float_info.max
_MOST_KNOWN = 20_000
"""Requests of any number of client-ids may be measured by one sensor."""
_ONE_SHAPE = (NO_FLAGS, CLIENT_ID_FLAG, USER_FLAG, USER_CLIENT_ID_FLAG)


class ClientQuotaManager:
    """
    The quotas of one type on one broker; this class itself serves Produce and Fetch (Kafka: `ClientQuotaManager`).

    Kafka's behavior as of `ManagerConfig.release`, its quirks included (`KafkaRelease` has those that changed):
    unlimited clients are measured too, sensors expire an hour after their last record (unless the `Registry` has
    another `expiration`), and a metric of a superseded rule stays until then.

    Rules hold decoded names, tags sanitized ones: see `Principal`. Safe for many threads.

    Args:
        registry: where sensors and metrics live; shared by all managers of a process.
        quota_type: what is counted.
        now_ms: epoch ms.
        config: windows and options.
        callback: decides on tags and bounds instead of the rules.

    """

    metric: str = "byte-rate"
    """Name of the metric that carries the quota."""

    def __init__(
        self,
        registry: Registry,
        quota_type: QuotaType,
        now_ms: int,
        config: ManagerConfig | None = None,
        callback: QuotaCallback | None = None,
    ) -> None:
        self.quota_type: QuotaType = quota_type
        self.config: ManagerConfig = ManagerConfig() if config is None else config
        self._longest_ms: int = self.config.release.longest_rate_ms
        self.reaper = ThrottledChannelReaper(registry, quota_type, now_ms)
        self._registry = registry
        self._custom: CallbackRules | None = None if callback is None else CallbackRules(callback, quota_type)
        forgets = self.config.release.forgets_removed_rules
        self._rules: QuotaRules = QuotaRules(forgets_removed=forgets) if self._custom is None else self._custom
        self._lock = threading.RLock()
        # What requests were measured with, until a rule or the registry changes.
        self._known: dict[tuple[str, str, str], ClientSensors] = {}
        self._removals: int = registry.removals
        self._factory = SensorFactory(registry, quota_type)

    @property
    def quotas_enabled(self) -> bool:
        """True if any rule exists, or a callback; without them requests are not recorded."""
        return self._rules.enabled

    def rules(self) -> RuleSnapshot:
        """Return the rules in force, with decoded names; with a callback they are those that it was given."""
        with self._lock:
            return self._rules.snapshot()

    def maybe_record_and_get_throttle_time(
        self, principal: Principal, client_id: str, value: float, now_ms: int
    ) -> int:
        """Record, if any rule exists; see `record_and_get_throttle_time`."""
        if not self._rules.enabled:
            return 0
        return self.record_and_get_throttle_time(principal, client_id, value, now_ms)

    def record_and_get_throttle_time(self, principal: Principal, client_id: str, value: float, now_ms: int) -> int:
        """
        Record what a request costs and return the ms to throttle it, 0 within the quota.

        Args:
            principal: who sends.
            client_id: as in the request's header, "" for null.
            value: bytes (Produce, Fetch), percent (Request) or partitions (ControllerMutation).
            now_ms: epoch ms.

        """
        sensors = self.sensors_for(principal, client_id, now_ms)
        breach = sensors.quota.try_record(value, now_ms)
        if breach is None:
            return 0
        return narrow(self._throttle_time_ms(breach, now_ms), self._longest_ms)

    def record_no_throttle(self, principal: Principal, client_id: str, value: float, now_ms: int) -> None:
        """Record a cost without a throttle; also without any rule."""
        sensors = self.sensors_for(principal, client_id, now_ms)
        sensors.quota.record(value, now_ms, check_quotas=False)

    def unrecord(self, principal: Principal, client_id: str, value: float, now_ms: int) -> None:
        """
        Take back a cost, for data that was not sent after all; also without any rule.

        Without a rule of this type there is nothing to take it from, and the metric turns negative, as in Kafka.
        """
        sensors = self.sensors_for(principal, client_id, now_ms)
        sensors.quota.record(-value, now_ms, check_quotas=False)

    def throttle(
        self,
        principal: Principal,
        client_id: str,
        throttle_time_ms: int,
        callback: ThrottleCallback,
        *,
        now_ms: int,
        now_ns: int,
    ) -> None:
        """
        Mute a channel; does nothing for 0 ms or less.

        Args:
            principal: of the request.
            client_id: as in the request's header.
            throttle_time_ms: how long.
            callback: called at once when the throttle starts, and by `reap` when it ends.
            now_ms: epoch ms, for the metrics.
            now_ns: monotonic ns, for the deadline.

        """
        if throttle_time_ms <= 0:
            return
        sensors = self.sensors_for(principal, client_id, now_ms)
        sensors.throttle_time.record(float(throttle_time_ms), now_ms)
        self.reaper.throttle(throttle_time_ms, callback, now_ms=now_ms, now_ns=now_ns)

    def reap(self, now_ms: int, now_ns: int) -> bool:
        """End the throttle that is due first; False if none is (`ThrottledChannelReaper.reap`)."""
        return self.reaper.reap(now_ms, now_ns)

    def quota(self, principal: Principal, client_id: str) -> Quota:
        """Return the bound that applies to a request, `UNLIMITED` without a rule."""
        if self._custom is not None:
            return Quota(self._bound_of(self._custom.tags_of(principal, client_id)))
        user, client = self._rules.metric_tags(principal.name, client_id)
        return Quota(_or_unlimited(self._rules.bound_of(user, client)))

    def decide(self, principal: Principal, client_id: str) -> Resolution:
        """Return the rule that applies to a request; with a callback no rule does."""
        if self._custom is not None:
            return NO_RULE
        return self._rules.decide(principal.name, client_id)

    def max_value_in_quota_window(self, principal: Principal, client_id: str, now_ms: int) -> float:
        """
        Return what a client may use up in all whole windows together: the most one fetch may return.

        The largest double when unlimited, 0 with a single window.
        """
        if not self._rules.enabled:
            return _DOUBLE_MAX
        tags = self.sensors_for(principal, client_id, now_ms).tags
        bound = self._limit(tags)
        if bound is None and self._custom is None and self.config.release.has_static_defaults and not tags.user:
            bound = UNLIMITED if tags.client_id else None
        if bound is None:
            return _DOUBLE_MAX
        return bound * (self.config.samples - 1) * self.config.window_seconds

    def sensors_for(self, principal: Principal, client_id: str, now_ms: int) -> ClientSensors:
        """Return the sensors that a request is measured with, made now if need be."""
        if self._custom is not None:
            return self._sensors_by_callback(self._custom, principal, client_id, now_ms)
        if self._registry.removals == self._removals:
            client = self._known.get((principal.name, principal.sanitized, client_id))
            if client is not None:
                return client
        return self._sensors_by_rules(principal, client_id, now_ms)

    def update_quota(self, entity: QuotaEntity, bound: float | None) -> None:
        """
        Set the quota of an entity, or remove it with None.

        Takes effect on the next record; what was recorded is kept, throttles under way are not shortened.
        """
        with self._lock:
            if bound is None:
                self._rules.remove(entity)
            else:
                self._rules.set(entity, float(bound))
            self._known.clear()
            if self._is_one_metric(entity):
                self._refresh_metric_of(entity)
            else:
                self.refresh_metrics()

    def refresh_metrics(self) -> None:
        """Give every metric with a quota the bound that its tags have now (Kafka: `updateQuotaMetricConfigs`)."""
        with self._lock:
            for name, metric in self._registry.metrics().items():
                quota = metric.config.quota
                if self._carries_quota(name) and quota is not None:
                    bound = self._bound_of_tags(name)
                    if bound != quota.bound:
                        metric.config = self._metric_config(bound)

    def _sensors_by_rules(self, principal: Principal, client_id: str, now_ms: int) -> ClientSensors:
        with self._lock:
            removals = self._registry.removals
            if removals != self._removals or len(self._known) >= _MOST_KNOWN:
                self._known.clear()
                self._removals = removals
            user, client = self._rules.metric_tags(principal.name, client_id)
            tags = EntityTags(user, client, principal.sanitized if user else "")
            sensors = self._sensors_of(tags, now_ms)
            self._known[principal.name, principal.sanitized, client_id] = sensors
            return sensors

    def _sensors_by_callback(
        self, custom: CallbackRules, principal: Principal, client_id: str, now_ms: int
    ) -> ClientSensors:
        tags = custom.tags_of(principal, client_id)
        with self._lock:
            sensors = self._sensors_of(tags, now_ms)
        if custom.is_reset_required():
            self.refresh_metrics()
        return sensors

    def _sensors_of(self, tags: EntityTags, now_ms: int) -> ClientSensors:
        return ClientSensors(
            tags,
            self._factory.quota_sensor(tags, now_ms, self._register_quota_metrics),
            self._factory.throttle_time_sensor(tags, now_ms),
        )

    def _register_quota_metrics(self, tags: EntityTags, sensor: Sensor) -> None:
        sensor.add(self._metric_name(tags), Rate(), self._quota_config(tags))

    def _throttle_time_ms(self, breach: Breach, now_ms: int) -> int:
        window_ms = breach.metric.window_size(now_ms)
        return rate_formula_ms(breach.value, breach.bound, window_ms)

    def _metric_about(self) -> str:
        return f"Tracking {self.metric} per user/client-id"

    def _metric_name(self, tags: EntityTags) -> MetricName:
        return self._factory.name(self.metric, tags, self._metric_about())

    def _quota_config(self, tags: EntityTags) -> MetricConfig:
        return self._metric_config(self._bound_of(tags))

    def _metric_config(self, bound: float) -> MetricConfig:
        return metric_config(self.config, Quota(bound))

    def _limit(self, tags: EntityTags) -> float | None:
        if self._custom is not None:
            return self._custom.limit_of(tags.metric_tags())
        return self._rules.bound_of(tags.user, tags.client_id)

    def _bound_of(self, tags: EntityTags) -> float:
        return _or_unlimited(self._limit(tags))

    def _is_one_metric(self, entity: QuotaEntity) -> bool:
        # Under rules of one shape a rule that names its entity has one metric; any other may have many.
        literal = not isinstance(entity.user, DefaultType) and not isinstance(entity.client_id, DefaultType)
        return literal and self._rules.flags in _ONE_SHAPE

    def _refresh_metric_of(self, entity: QuotaEntity) -> None:
        user = entity.user if isinstance(entity.user, str) else ""
        client_id = entity.client_id if isinstance(entity.client_id, str) else ""
        tags = EntityTags(user, client_id, sanitize(user))
        metric = self._registry.metric(self._metric_name(tags))
        if metric is not None:
            metric.config = self._quota_config(tags)

    def _carries_quota(self, name: MetricName) -> bool:
        return name.name == self.metric and name.group == self.quota_type.group

    def _bound_of_tags(self, name: MetricName) -> float:
        if self._custom is not None:
            return _or_unlimited(self._custom.limit_of(name.tags))
        user = name.tags.get(USER_TAG)
        client_id = name.tags.get(CLIENT_ID_TAG)
        if user is None or client_id is None:
            return UNLIMITED
        return _or_unlimited(self._rules.bound_of(_decoded(user), client_id))


def _or_unlimited(bound: float | None) -> float:
    return UNLIMITED if bound is None else bound


def _decoded(user_tag: str) -> str:
    try:
        return desanitize(user_tag)
    except MalformedName:
        return user_tag
