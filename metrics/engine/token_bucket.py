"""Credit that accrues steadily up to a burst and is spent by what is recorded."""

import math

from ..kafka.numbers import LONG_MAX, jmin
from .config import MetricConfig
from .native import i64
from .quota import Quota
from .rate import TimeUnit, convert
from .stat import Stat


class TokenBucket(Stat):
    """
    Tokens left of a burst of `samples x window x bound` (Kafka: `TokenBucket`, KIP-599).

    A rate remembers one large operation until its sample is gone; a bucket recovers at the pace of its quota. With
    a quota of 5 over 100 windows of 1 s and a burst of 560, a `Rate` refuses for 100 s, a bucket for
    60 / 5 = 12 s.

    * An operation may take more than there is: tokens go below zero without a limit. Recording a negative value gives
      tokens back, up to the burst.
    * Tokens accrue when touched: time before a change of the quota is paid at the **new** rate.
    * Without a quota nothing is recorded and the bucket reads `LONG_MAX`.
    * A clock that is set back takes tokens away and gives them back as it catches up; `SteadyClock` avoids that.
    * As in Kafka a new bucket is empty at the time 0 and therefore full at any epoch time. A clock that starts near
      zero needs an explicit start: `TokenBucket.full(now_ms)`, or `tokens` at the time `at_ms`.

    Args:
        unit: what the bound is per.
        tokens: credit at `at_ms`, cut to the burst on the first touch.
        at_ms: when accrual begins.

    """

    __slots__ = ("_in_seconds", "_last_ms", "_tokens", "unit")

    def __init__(self, unit: TimeUnit = TimeUnit.SECONDS, *, tokens: float = 0.0, at_ms: i64 = 0) -> None:
        self.unit: TimeUnit = unit
        self._in_seconds: bool = unit is TimeUnit.SECONDS
        self._tokens: float = float(tokens)
        self._last_ms: i64 = at_ms

    @staticmethod
    def full(now_ms: i64, unit: TimeUnit = TimeUnit.SECONDS) -> "TokenBucket":
        """Return a bucket that holds its whole burst at `now_ms`, whatever the clock's origin."""
        return TokenBucket(unit, tokens=math.inf, at_ms=now_ms)

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:
        """Take `value` tokens."""
        quota = config.quota
        if quota is None:
            return
        burst = self._burst(config, quota.bound)
        tokens = self._refilled(quota.bound, burst, now_ms) - value
        self._tokens = tokens if tokens < burst else jmin(burst, tokens)
        self._last_ms = now_ms

    def measure(self, config: MetricConfig, now_ms: i64) -> float:
        """Add what has accrued until `now_ms` and return the tokens."""
        quota = config.quota
        if quota is None:
            return float(LONG_MAX)
        self._tokens = self._refilled(quota.bound, self._burst(config, quota.bound), now_ms)
        self._last_ms = now_ms
        return self._tokens

    def peek(self, config: MetricConfig, now_ms: i64) -> float:
        """Return what `measure` would; the steps in which tokens accrue, and so their rounding, do not change."""
        quota = config.quota
        if quota is None:
            return float(LONG_MAX)
        return self._refilled(quota.bound, self._burst(config, quota.bound), now_ms)

    def acceptable(self, quota: Quota, value: float) -> bool:  # noqa: ARG002 - the bound is a pace here
        """Return whether no more was taken than there was; bound and direction of the quota play no part."""
        return not value < 0.0

    def _refilled(self, bound: float, burst: float, now_ms: i64) -> float:
        tokens = self._tokens + bound * self._to_unit(now_ms - self._last_ms)
        return tokens if tokens < burst else jmin(burst, tokens)

    def _burst(self, config: MetricConfig, bound: float) -> float:
        return float(config.samples) * self._to_unit(config.time_window_ms) * bound

    def _to_unit(self, ms: i64) -> float:
        if self._in_seconds:
            return float(ms) / 1000.0
        return convert(ms, self.unit)
