"""The four quota managers of a broker or controller."""

from dataclasses import dataclass, field

from ..kafka.entities import QuotaEntity, QuotaType
from .client_quota_manager import ClientQuotaManager
from .controller_mutation import ControllerMutationQuotaManager
from .quota_callback import QuotaCallback
from .reaper_thread import ReaperThread
from .registry import Registry
from .request_quota_manager import RequestQuotaManager
from .window_config import ManagerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig:
    """Settings of all four (Kafka: `QuotaConfig`)."""

    client: ManagerConfig = field(default_factory=ManagerConfig)
    """Produce, Fetch and Request: `quota.window.num`, `quota.window.size.seconds`."""

    controller: ManagerConfig = field(default_factory=ManagerConfig)
    """ControllerMutation: `controller.quota.window.num`, `controller.quota.window.size.seconds`."""


class QuotaManagers:
    """
    One manager of each type over one registry (Kafka: `QuotaFactory.QuotaManagers`).

    A KRaft node that is broker and controller has two of these over one registry. They meet in the same sensors: what
    either records counts for both, and a rule bounds the shared metric once one of them knows it. Each keeps its own
    rules, delay queues, reapers and lock: as in Kafka, a request that meets a sensor which the other set is just making
    may go unmeasured.

    Args:
        registry: where sensors and metrics live.
        now_ms: epoch ms.
        config: windows and options.
        callback: decides on tags and bounds instead of the rules; this set closes it.

    """

    def __init__(
        self, registry: Registry, now_ms: int, config: QuotaConfig | None = None, callback: QuotaCallback | None = None
    ) -> None:
        chosen = QuotaConfig() if config is None else config
        self.fetch = ClientQuotaManager(registry, QuotaType.FETCH, now_ms, chosen.client, callback)
        self.produce = ClientQuotaManager(registry, QuotaType.PRODUCE, now_ms, chosen.client, callback)
        self.request = RequestQuotaManager(registry, now_ms, chosen.client, callback)
        self.controller_mutation = ControllerMutationQuotaManager(registry, now_ms, chosen.controller, callback)
        self.callback: QuotaCallback | None = callback
        self._threads: list[ReaperThread] = []

    def all(self) -> tuple[ClientQuotaManager, ...]:
        """Return the managers in Kafka's order."""
        return self.fetch, self.produce, self.request, self.controller_mutation

    def of(self, quota_type: QuotaType) -> ClientQuotaManager:
        """Return the manager of a type."""
        return next(manager for manager in self.all() if manager.quota_type is quota_type)

    def update_quota(self, quota_type: QuotaType, entity: QuotaEntity, bound: float | None) -> None:
        """Set or, with None, remove one quota of an entity; the other types are not touched."""
        self.of(quota_type).update_quota(entity, bound)

    def update_cluster_metadata(self, cluster: object) -> bool:
        """
        Call the callback, if any, after topics or brokers have changed; returns whether bounds have changed by that.

        Then all metrics ask for their bounds again. Kafka does so in KRaft mode as of 4.0.
        """
        changed = self.callback is not None and self.callback.update_cluster_metadata(cluster)
        if changed:
            for manager in self.all():
                manager.refresh_metrics()
        return changed

    def reap(self, now_ms: int, now_ns: int) -> int:
        """End every throttle that is due; return how many were."""
        ended = 0
        for manager in self.all():
            while manager.reap(now_ms, now_ns):
                ended += 1
        return ended

    def start_reapers(self, prefix: str = "") -> None:
        """Let threads end the throttles, by the machine's clocks; once is enough."""
        if not self._threads:
            self._threads = [
                ReaperThread(manager.reaper, f"{prefix}ThrottledChannelReaper-{manager.quota_type.group}")
                for manager in self.all()
            ]

    def close(self) -> None:
        """Stop the threads, if any, and close the callback; metrics stay readable."""
        for thread in self._threads:
            thread.close()
        self._threads = []
        if self.callback is not None:
            self.callback.close()
