"""Quotas on the partitions that clients create and delete (KIP-599)."""

from enum import Enum

from ..kafka.entities import QuotaType
from ..kafka.principal import Principal
from .client_quota_manager import ClientQuotaManager
from .client_sensors import EntityTags
from .errors import ThrottlingQuotaExceeded
from .mutation_quota import UNBOUNDED, MutationQuota, PermissiveMutationQuota, StrictMutationQuota
from .quota_callback import QuotaCallback
from .rate import Rate
from .registry import Registry
from .sensor import Sensor
from .token_bucket import TokenBucket
from .window_config import ManagerConfig


class MutationApi(Enum):
    """An API that is charged; the value is the first version with clients that understand a refusal (error 89)."""

    CREATE_TOPICS = 6
    CREATE_PARTITIONS = 3
    DELETE_TOPICS = 5

    @property
    def strict_since(self) -> int:
        """The first version that is refused rather than only throttled."""
        return self.value


class ControllerMutationQuotaManager(ClientQuotaManager):
    """
    Limits partitions per second with a token bucket (Kafka: `ControllerMutationQuotaManager`).

    The bucket holds `samples * window * limit` tokens. `mutation-rate` beside it is for the eye only: it is measured
    over the registry's windows. Throttles are not clamped. As in Kafka a bucket is empty at the time 0: begin a
    simulation at any epoch time.
    """

    metric = "tokens"

    def __init__(
        self,
        registry: Registry,
        now_ms: int,
        config: ManagerConfig | None = None,
        callback: QuotaCallback | None = None,
    ) -> None:
        super().__init__(registry, QuotaType.CONTROLLER_MUTATION, now_ms, config, callback)

    def record_and_get_throttle_time(self, principal: Principal, client_id: str, value: float, now_ms: int) -> int:
        """Charge strictly: a refused mutation costs nothing, and the ms until the bucket is even are returned."""
        quota = StrictMutationQuota(self.sensors_for(principal, client_id, now_ms), self.config)
        try:
            quota.record(value, now_ms)
        except ThrottlingQuotaExceeded as refusal:
            return refusal.throttle_time_ms
        return 0

    def quota_for(
        self, principal: Principal, client_id: str, api: MutationApi, version: int, now_ms: int
    ) -> MutationQuota:
        """Return the quota of a request: strict from `api.strict_since` on, else permissive, or unbounded."""
        if not self.config.release.enforces_controller_mutations:
            return UNBOUNDED
        if version >= api.strict_since:
            return self.strict_quota_for(principal, client_id, now_ms)
        return self.permissive_quota_for(principal, client_id, now_ms)

    def strict_quota_for(self, principal: Principal, client_id: str, now_ms: int) -> MutationQuota:
        """Return the quota of a request from a client that understands a refusal."""
        if not self.quotas_enabled:
            return UNBOUNDED
        sensors = self.sensors_for(principal, client_id, now_ms)
        return StrictMutationQuota(sensors, self.config)

    def permissive_quota_for(self, principal: Principal, client_id: str, now_ms: int) -> MutationQuota:
        """Return the quota of a request that may only be throttled, topics created on first use among them."""
        if not self.quotas_enabled:
            return UNBOUNDED
        sensors = self.sensors_for(principal, client_id, now_ms)
        return PermissiveMutationQuota(sensors, self.config)

    def _register_quota_metrics(self, tags: EntityTags, sensor: Sensor) -> None:
        about = "Tracking mutation-rate per user/client-id"
        sensor.add(self._factory.name("mutation-rate", tags, about), Rate())
        sensor.add(self._metric_name(tags), TokenBucket(), self._quota_config(tags))

    def _metric_about(self) -> str:
        return "Tracking remaining tokens in the token bucket per user/client-id"
