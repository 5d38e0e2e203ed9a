"""A Produce manager with its registry, for tests."""

from quotascope.metrics import DEFAULT, ClientQuotaManager, ManagerConfig, Principal, QuotaEntity, QuotaType, Registry

EPOCH_MS = 1_600_000_000_000
ALICE, BOB = Principal("alice"), Principal("bob")
DEFAULT_CLIENT = QuotaEntity(None, DEFAULT)


class Engine:
    """A Produce manager with its registry, and short ways to look into them."""

    def __init__(self, config: ManagerConfig | None = None) -> None:
        self.registry = Registry()
        self.manager = ClientQuotaManager(self.registry, QuotaType.PRODUCE, EPOCH_MS, config)

    def bound(self, user: str, client_id: str) -> float:
        """The bound on the metric with these tags."""
        name = self.registry.metric_name("byte-rate", "Produce", {"user": user, "client-id": client_id})
        metric = self.registry.metric(name)
        assert metric is not None
        assert metric.config.quota is not None
        return metric.config.quota.bound

    def value(self, name: str, now_ms: int, user: str = "", client_id: str = "c") -> float:
        """The value of a Produce metric with these tags."""
        tags = {"user": user, "client-id": client_id}
        metric = self.registry.metric(self.registry.metric_name(name, "Produce", tags))
        assert metric is not None
        return metric.value(now_ms)

    def queue_size(self) -> float:
        """How many channels are throttled."""
        metric = self.registry.metric(self.registry.metric_name("queue-size", "Produce"))
        assert metric is not None
        return metric.value(EPOCH_MS)
