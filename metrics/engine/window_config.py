"""Configuration of a metric by a quota's windows, and a deviation of a quota manager from Kafka on request."""

from dataclasses import dataclass

from ..kafka.windows import WindowConfig
from .config import MetricConfig
from .quota import Quota


def metric_config(windows: WindowConfig, quota: Quota | None) -> MetricConfig:
    """Return the config of a metric under a bound."""
    return MetricConfig(windows.samples, windows.window_ms, quota=quota, release=windows.release)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerConfig(WindowConfig):
    """
    Settings of one quota manager (Kafka: `ClientQuotaManagerConfig`); the option is ours.

    The windows are `quota.window.*`, those of the controller `controller.quota.window.*`.
    """

    charge_validate_only: bool = True
    """Whether a validate-only mutation costs as much as a real one where the release charges it, against KIP-599."""

    @property
    def charges_validate_only(self) -> bool:
        """True if a validate-only mutation costs as much as a real one."""
        return self.charge_validate_only and self.release.charges_validate_only
