"""Charges of a controller request for its mutations (KIP-599)."""

from typing import Final

from ..kafka.numbers import to_i32, to_i64
from .client_sensors import ClientSensors
from .errors import QuotaViolation, ThrottlingQuotaExceeded
from .throttle_time import narrow, token_throttle_time_ms
from .window_config import ManagerConfig


class MutationQuota:
    """
    The quota of one request, made by `ControllerMutationQuotaManager` (Kafka: `ControllerMutationQuota`).

    This class itself is that of requests without a limit. A request may hold several mutations, charged one by one:
    creating a topic costs its partitions, adding partitions costs the increase, deleting a topic costs its
    partitions.
    """

    __slots__ = ()

    @property
    def is_exceeded(self) -> bool:
        """True if a mutation was refused."""
        return False

    def record(self, permits: float, now_ms: int, *, validate_only: bool = False) -> None:
        """
        Charge a mutation of that many partitions.

        Args:
            permits: partitions.
            now_ms: epoch ms.
            validate_only: whether nothing will be changed; costs the same in KRaft, and nothing in ZooKeeper mode
                (`KafkaRelease.charges_validate_only`).

        Raises:
            ThrottlingQuotaExceeded: a strict quota refuses it.

        """

    def throttle_time_ms(self, now_ms: int) -> int:  # noqa: ARG002 - without a limit there is none
        """Return the ms to throttle the request; the time since the violation counts."""
        return 0


UNBOUNDED: Final = MutationQuota()
"""For all clients, as long as no rule exists (Kafka: `UNBOUNDED_CONTROLLER_MUTATION_QUOTA`)."""


class _BoundedQuota(MutationQuota):
    """Remembers the last violation (Kafka: `AbstractControllerMutationQuota`)."""

    __slots__ = ("_config", "_sensors", "_throttle_time_ms", "_violated_at_ms")

    def __init__(self, sensors: ClientSensors, config: ManagerConfig) -> None:
        self._sensors: ClientSensors = sensors
        self._config: ManagerConfig = config
        self._throttle_time_ms: int = 0
        self._violated_at_ms: int = 0

    def record(self, permits: float, now_ms: int, *, validate_only: bool = False) -> None:
        """Charge a mutation, see `MutationQuota.record`."""
        if validate_only and not self._config.charges_validate_only:
            return
        self._charge(permits, now_ms)

    def throttle_time_ms(self, now_ms: int) -> int:
        """Return the ms to throttle the request, counted from the last violation."""
        release = self._config.release
        if self._throttle_time_ms == 0 and release.forgets_mutation_throttles_of_zero:
            return 0
        # `narrow` would stop at the largest long, where Java's difference wraps around
        left_ms = to_i64(self._throttle_time_ms - (now_ms - self._violated_at_ms))
        if release.cuts_mutation_waits_first:
            return max(0, to_i32(left_ms))
        return to_i32(max(0, left_ms))

    def _charge(self, permits: float, now_ms: int) -> None:
        raise NotImplementedError

    def _remember(self, violation: QuotaViolation, now_ms: int) -> None:
        self._throttle_time_ms = token_throttle_time_ms(violation)
        self._violated_at_ms = now_ms


class StrictMutationQuota(_BoundedQuota):
    """
    Refuses mutations while the bucket is in debt (Kafka: `StrictControllerMutationQuota`).

    What overdraws the bucket is accepted, at any size, and answered with no throttle; the next one is refused and costs
    nothing.
    """

    __slots__ = ()

    @property
    def is_exceeded(self) -> bool:
        """True if a mutation was refused, unless the debt was so small that the throttle rounds to 0."""
        return self._throttle_time_ms > 0

    def _charge(self, permits: float, now_ms: int) -> None:
        try:
            self._sensors.quota.record_if_within_quota(permits, now_ms)
        except QuotaViolation as violation:
            self._remember(violation, now_ms)
            left_ms = narrow(self._throttle_time_ms)
            raise ThrottlingQuotaExceeded(left_ms) from None


class PermissiveMutationQuota(_BoundedQuota):
    """
    Accepts everything and throttles the request afterwards (Kafka: `PermissiveControllerMutationQuota`).

    For clients that do not know the error THROTTLING_QUOTA_EXCEEDED.
    """

    __slots__ = ()

    def _charge(self, permits: float, now_ms: int) -> None:
        try:
            self._sensors.quota.record(permits, now_ms)
        except QuotaViolation as violation:
            self._remember(violation, now_ms)
