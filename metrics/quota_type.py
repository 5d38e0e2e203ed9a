"""The four kinds of client quota that a broker keeps apart."""

from enum import Enum


class QuotaType(Enum):
    """
    What a client quota counts; the value is Kafka's name for it (`QuotaType`, `ClientQuotaType`).

    Kafka calls every metric group, sensor and MBean type after this name.
    """

    PRODUCE = "Produce"
    """Bytes per second that clients write to one broker."""

    FETCH = "Fetch"
    """Bytes per second that clients read from one broker."""

    REQUEST = "Request"
    """Time of one broker's request threads, in percent of one thread."""

    CONTROLLER_MUTATION = "ControllerMutation"
    """Partitions created, added or deleted per second through the controller."""

    @property
    def group(self) -> str:
        """Kafka's metric group and the `type` of its MBeans, such as `ControllerMutation`."""
        return self.value

    @property
    def label(self) -> str:
        """The value of our label `quota_type`, such as `controller_mutation`."""
        return _LABELS[self]

    @property
    def quota_key(self) -> str:
        """The dynamic configuration key that sets such a quota (KIP-546, KIP-599)."""
        return _QUOTA_KEYS[self]

    @classmethod
    def of_quota_key(cls, key: str) -> "QuotaType | None":
        """The type that `key` limits, None for keys of other quotas (`connection_creation_rate`)."""
        return _BY_QUOTA_KEY.get(key)


_LABELS = {
    QuotaType.PRODUCE: "produce",
    QuotaType.FETCH: "fetch",
    QuotaType.REQUEST: "request",
    QuotaType.CONTROLLER_MUTATION: "controller_mutation",
}
_QUOTA_KEYS = {
    QuotaType.PRODUCE: "producer_byte_rate",
    QuotaType.FETCH: "consumer_byte_rate",
    QuotaType.REQUEST: "request_percentage",
    QuotaType.CONTROLLER_MUTATION: "controller_mutation_rate",
}
_BY_QUOTA_KEY = {key: quota_type for quota_type, key in _QUOTA_KEYS.items()}
