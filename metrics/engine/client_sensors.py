"""The sensors of one quota entity, made when its first request comes."""

from collections.abc import Callable
from typing import Final

from ..kafka.entities import QuotaType
from .metric_name import MetricName
from .registry import Registry
from .sensor import Sensor
from .windowed import Avg

USER_TAG: Final = "user"
CLIENT_ID_TAG: Final = "client-id"
INACTIVE_SECONDS: Final = 3600
"""After an hour without a record a sensor may be removed; the next request makes a new one."""


class EntityTags:
    """
    The tags that a request is measured under.

    `user` is decoded, for look-ups in the rules; `sanitized_user` is what metrics and sensors are called after;
    `suffix` ends the sensors' names.
    """

    __slots__ = ("client_id", "sanitized_user", "suffix", "user")

    def __init__(self, user: str, client_id: str, sanitized_user: str) -> None:
        self.user: str = user
        self.client_id: str = client_id
        self.sanitized_user: str = sanitized_user
        self.suffix: str = f"{sanitized_user}:{client_id}"

    def metric_tags(self) -> dict[str, str]:
        """Return the tags of the metrics; both keys are always there."""
        return {USER_TAG: self.sanitized_user, CLIENT_ID_TAG: self.client_id}


Fill = Callable[[EntityTags, Sensor], None]
"""Gives a new sensor its metrics."""


class ClientSensors:
    """The sensors of an entity (Kafka: `ClientSensors`)."""

    __slots__ = ("quota", "tags", "throttle_time")

    def __init__(self, tags: EntityTags, quota: Sensor, throttle_time: Sensor) -> None:
        self.tags: EntityTags = tags
        self.quota: Sensor = quota
        self.throttle_time: Sensor = throttle_time


class SensorFactory:
    """
    Finds or makes the sensors of one quota type.

    The caller holds a lock, so that no other thread finds an incomplete sensor.

    Args:
        registry: where sensors and metrics live.
        quota_type: their group.

    """

    def __init__(self, registry: Registry, quota_type: QuotaType) -> None:
        self._registry = registry
        self._group: str = quota_type.group
        self._quota_prefix: str = f"{self._group}-"
        self._throttle_prefix: str = f"{self._group}ThrottleTime-"

    def quota_sensor(self, tags: EntityTags, now_ms: int, fill: Fill) -> Sensor:
        """Return the sensor `<Type>-<suffix>`; `fill` gives a new one its metrics."""
        return self._sensor(self._quota_prefix, tags, now_ms, fill)

    def throttle_time_sensor(self, tags: EntityTags, now_ms: int) -> Sensor:
        """Return the sensor `<Type>ThrottleTime-<suffix>`; the average is over the registry's windows."""
        return self._sensor(self._throttle_prefix, tags, now_ms, self._fill_throttle_time)

    def name(self, name: str, tags: EntityTags, description: str) -> MetricName:
        """Return the name of a metric of this group with these tags."""
        return self._registry.metric_name(name, self._group, tags.metric_tags(), description)

    def _sensor(self, prefix: str, tags: EntityTags, now_ms: int, fill: Fill) -> Sensor:
        name = prefix + tags.suffix
        sensor = self._registry.get_sensor(name)
        if sensor is None:
            sensor = self._registry.sensor(name, now_ms, inactive_seconds=INACTIVE_SECONDS)
            fill(tags, sensor)
        return sensor

    def _fill_throttle_time(self, tags: EntityTags, sensor: Sensor) -> None:
        about = "Tracking average throttle-time per user/client-id"
        sensor.add(self.name("throttle-time", tags, about), Avg())
