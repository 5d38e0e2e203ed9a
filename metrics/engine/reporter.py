"""The interface for reporters of metrics."""

from collections.abc import Mapping, Sequence

from .metric import KafkaMetric

NAMESPACE = "_namespace"
"""Key of the context that holds the prefix of MBean names (Kafka: `MetricsContext.NAMESPACE`)."""


class MetricsReporter:
    """
    Called at every registration and removal; each method does nothing unless overridden (Kafka: `MetricsReporter`).

    The registry's lock is held during `metric_change` and `metric_removal`, and the sensor's own during the first: a
    reporter may read metrics, which have other locks, but must not record. It does not hear of new configs, and
    so not of new quotas. What it raises there is logged and forgotten.
    """

    def context_change(self, context: Mapping[str, str]) -> None:
        """Learn the context, before anything else."""

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        """Start with the metrics that exist."""

    def metric_change(self, metric: KafkaMetric) -> None:
        """Learn of a new metric."""

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Learn that a metric is gone."""

    def close(self) -> None:
        """Stop: the registry was closed, or the reporter taken off it."""
