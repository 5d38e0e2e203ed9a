"""Names of a client's metrics when it pushes them to a broker (KIP-714)."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ...kafka.errors import MalformedName
from ..cumulative import CumulativeSum
from ..metric_name import MetricName
from ..stat import Gauge, Measurable
from ..windowed import WindowedCount

TELEMETRY_PREFIX: Final = "org.apache.kafka"
"""What the names of Kafka's own clients begin with."""

_EXCLUDED_LABEL = "client_id"


class TelemetryKind(Enum):
    """Form in which a metric is sent."""

    GAUGE = "gauge"
    """The value of the moment."""

    SUM = "sum"
    """A sum that only rises, or its increase since the last push."""


def telemetry_name(name: MetricName, prefix: str = TELEMETRY_PREFIX) -> str:
    """
    Return what a metric is called (Kafka: `TelemetryMetricNamingConvention`).

    `produce-throttle-time-avg` of `producer-metrics` is `org.apache.kafka.producer.produce.throttle.time.avg`: the
    group loses each `.metrics`, the name would keep it.
    """
    group = _clean(name.group, ".").replace(".metrics", "")
    return f"{prefix}.{group}.{_clean(name.name, '.')}"


def telemetry_labels(tags: Mapping[str, str]) -> dict[str, str]:
    """
    Return the labels of a metric: its tags without the client-id, which the broker knows from the connection.

    Raises:
        MalformedName: two tags become the same label.

    """
    labels: dict[str, str] = {}
    for key, value in tags.items():
        label = _clean(key, "_")
        if label in labels:
            raise MalformedName(key, "two tags become the same label")
        labels[label] = value
    labels.pop(_EXCLUDED_LABEL, None)
    return labels


def telemetry_kind(provider: Measurable | Gauge) -> TelemetryKind:
    """
    Return how a metric is sent (Kafka: `KafkaMetricsCollector`).

    A windowed count counts as a sum, although it falls when its windows end, as in Kafka. Gauges that hold no number
    are not sent at all; here they are gauges.
    """
    rises = isinstance(provider, WindowedCount | CumulativeSum)
    return TelemetryKind.SUM if rises else TelemetryKind.GAUGE


def _clean(text: str, joiner: str) -> str:
    return text.lower().replace("-", joiner)
