"""
Quotas that a program decides on instead of rules (Kafka: `client.quota.callback.class`).

In a file of its own, which a compiled build leaves alone: programs inherit from it.
"""

from collections.abc import Mapping

from ..kafka.entities import QuotaEntity, QuotaType
from ..kafka.principal import Principal


class QuotaCallback:
    """
    Decides under which tags a request is measured and what they may use (Kafka: `ClientQuotaCallback`, KIP-257).

    A program derives from this class and overrides what it needs. One instance serves all quota managers of a node;
    it is called by many threads, and at every request, so it must be quick and must not wait. What it raises reaches
    the sender of the request.

    With a callback quotas are enabled from the start, and a change of one quota looks at all metrics of its type.
    """

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take in the node's configs, at the start and whenever they change."""

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """
        Return the tags that a request is measured under, in the order in which MBeans and sensors name them.

        Any keys and values will do: requests with the same tags share a quota. Sensors are called after the values
        alone, so tags with the same values in the same order meet in one sensor, whatever their keys, as in Kafka.
        """
        raise NotImplementedError

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """Return the bound of such tags in the unit of the type; None when they are not in use, which is unlimited."""
        raise NotImplementedError

    def update_quota(self, quota_type: QuotaType, entity: QuotaEntity, bound: float) -> None:
        """Learn that a quota was configured; a default dimension is `DEFAULT`, where Kafka names it `<default>`."""

    def remove_quota(self, quota_type: QuotaType, entity: QuotaEntity) -> None:
        """Learn that a quota is configured no longer."""

    def quota_reset_required(self, quota_type: QuotaType) -> bool:  # noqa: ARG002 - for overriding
        """
        Return whether bounds have changed for reasons of the callback's own; called at every request.

        A change is returned once. After True, all metrics of the type ask for their bounds again.
        """
        return False

    def update_cluster_metadata(self, cluster: object) -> bool:  # noqa: ARG002 - for overriding
        """
        Learn that topics, partitions or brokers have changed; whether bounds have changed by that.

        Args:
            cluster: whatever the program that embeds the managers passes on.

        """
        return False

    def close(self) -> None:
        """Let go of resources when the node stops."""
