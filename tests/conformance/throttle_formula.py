"""Vectors about the two formulae of throttle times."""

from tests.conformance import expectations
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import (
    KafkaRelease,
    MetricConfig,
    MetricName,
    Quota,
    QuotaViolation,
    Rate,
    Registry,
    Stat,
    TokenBucket,
    rate_throttle_time_ms,
    token_throttle_time_ms,
)


class ThrottleFormulaRunner(Runner):
    """Throttle times of rates that nothing was recorded in, so that their window is `samples - 1` windows long."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._time_window_ms = config.integer("time_window_ms")

    def op_throttle_time(self, step: Fields) -> None:
        """Compute ms, not narrowed to 32 bits."""
        violation = _violated(
            Rate(),
            observed=step.number("observed"),
            bound=step.number("bound"),
            samples=step.integer("samples"),
            time_window_ms=self._time_window_ms,
        )
        throttle_ms = rate_throttle_time_ms(violation, self.now_ms(step))
        expectations.number(step, throttle_ms)


class TokenThrottleRunner(Runner):
    """Throttle times of token buckets."""

    def op_throttle_time(self, step: Fields) -> None:
        """Compute ms, not narrowed to 32 bits."""
        violation = _violated(
            TokenBucket(), observed=step.number("value"), bound=step.number("bound")
        )
        expectations.number(step, token_throttle_time_ms(violation))


def _violated(
    stat: Stat,
    *,
    observed: float,
    bound: float,
    samples: int = 2,
    time_window_ms: int = 30_000,
) -> QuotaViolation:
    config = MetricConfig(samples, time_window_ms, quota=Quota(float(bound)))
    metric = Registry().add_metric(MetricName("violated", ""), stat, config)
    return QuotaViolation(metric.name, float(observed), float(bound), metric)
