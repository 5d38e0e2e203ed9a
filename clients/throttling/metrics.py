"""Metrics of clients about their throttles."""

from enum import Enum

from quotascope.metrics import Avg, Max, Registry, Sensor


class ClientKind(Enum):
    """
    A client that measures its throttles: sensor, group and descriptions of its metrics. Admin clients do not.

    Kafka: `SenderMetricsRegistry`, `FetchMetricsRegistry`, `ShareFetchMetricsRegistry`.
    """

    PRODUCER = (
        "produce-throttle-time",
        "producer-metrics",
        "time in ms a request was throttled by a broker",
    )
    CONSUMER = (
        "fetch-throttle-time",
        "consumer-fetch-manager-metrics",
        "throttle time in ms",
    )
    SHARE_CONSUMER = (
        "fetch-throttle-time",
        "consumer-share-fetch-manager-metrics",
        "throttle time in ms",
    )

    def __init__(self, sensor_name: str, group: str, about: str) -> None:
        self.sensor_name = sensor_name
        self.group = group
        self.about = about


def throttle_time_sensor(
    registry: Registry, kind: ClientKind, client_id: str, now_ms: int
) -> Sensor:
    """
    The sensor for throttle times in ms, made when there is none yet; `now_ms` is epoch ms.

    It wants the throttle time of every response of every API, zeros included: so `…-throttle-time-avg` is diluted by what was not
    throttled, and 0, not NaN, for a client that is active and unthrottled. Raises `DuplicateMetric` when another sensor of the
    registry has such a metric; one registry is for one client.
    """
    sensor = registry.sensor(kind.sensor_name, now_ms)
    tags = {"client-id": client_id}
    for suffix, adjective, stat in (("avg", "average", Avg()), ("max", "maximum", Max())):  # fmt: skip
        name = f"{kind.sensor_name}-{suffix}"
        about = f"The {adjective} {kind.about}"
        sensor.add(registry.metric_name(name, kind.group, tags, about), stat)
    return sensor
