"""Numbers in the regions where statistics and quotas change their mind."""

import sys
from dataclasses import dataclass

from tests.differential.choice import Choice
from tests.differential.wire import Argument

LONG_MAX = 2**63 - 1
EPOCH_MS = 1_600_000_000_000
TINY, SMALLEST = 1e-9, 5e-324
HUGE, LARGEST = 1e300, sys.float_info.max
EXTREMES = (HUGE, -HUGE, LARGEST, TINY, SMALLEST, 2.0**53 + 2)
SHARES = (1.0, 0.5, 0.1, 1.1, 2.0, 1.0000000000000002, -1.0, -0.1, 0.3, 0.0, -0.0)
"""Shares of what fits into all windows."""
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    samples: int
    window_ms: int
    event_window: int = LONG_MAX
    bound: float | None = None
    upper: bool = True

    def parts(self) -> tuple[Argument, ...]:
        return (self.samples, self.window_ms, self.event_window, self.bound, self.upper)

    @property
    def burst(self) -> float:
        """Amount that fits into all windows at the bound; at 7 per second if there is none."""
        return self.samples * self.window_ms / 1000 * (self.bound or 7.0)


def settings(choice: Choice) -> Settings:
    """Draw a config: a broker's own half of the time, anything else that Kafka can compute with otherwise."""
    samples = choice.of((2, 11, 1, 2, 3, choice.integer(1, 12)))
    window_ms = choice.of((1000, 30_000, 1000, 1, 10, choice.integer(1, 100_000), 90 * DAY_MS))
    event_window = choice.of((LONG_MAX,) * 6 + (0, 1, 2, 5))
    upper = choice.of((True, True, True, False))
    return Settings(samples=samples, window_ms=window_ms, event_window=event_window, bound=bound(choice), upper=upper)


def bound(choice: Choice) -> float | None:
    """Draw a bound, or none; one in eight is extreme."""
    if choice.integer(0, 7) < 7:
        return choice.of((10.0, 1.0, 5.5, 0.1, 1000.0, 33.3, None))
    return choice.of((0.0, float(LONG_MAX), TINY, HUGE, -3.0, choice.real()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Temper:
    """Extremes of a session: one extreme value hides all ordinary ones in its window, so most sessions have none."""

    steady: bool
    """The clock never steps back."""
    tame: bool
    """No value is extreme."""
    coarse: bool
    """The clock ticks in half windows, so that whatever has to coincide does."""


def temper(choice: Choice) -> Temper:
    return Temper(
        steady=choice.of((True, True, False)),
        tame=choice.of((True, True, True, False)),
        coarse=choice.of((False, False, True)),
    )


def step_ms(choice: Choice, settings: Settings, temper: Temper) -> int:
    """
    Draw how far the clock moves.

    Often not at all, a little, or about a window, at times to where windows become obsolete.

    Boundaries are hit exactly or missed by one. A clock that is not steady also steps back, by a little, by windows, or
    by months.
    """
    step = _step_ms(choice, settings, temper)
    tick = max(settings.window_ms // 2, 1)
    return step // tick * tick if temper.coarse else step


def _step_ms(choice: Choice, settings: Settings, temper: Temper) -> int:
    window_ms, span_ms = settings.window_ms, settings.samples * settings.window_ms
    kind = choice.integer(0, 99)
    if kind < 30:
        return 0
    if kind < 50:
        return choice.integer(0, max(window_ms // 4, 1))
    if kind < 80:
        between = choice.integer(window_ms // 2, 2 * window_ms)
        return _beside(choice, choice.of((window_ms, window_ms // 2, between)))
    if kind < 93 or temper.steady:
        spans_ms = (span_ms, span_ms - window_ms, span_ms + window_ms, span_ms // 2)
        return _beside(choice, choice.of(spans_ms))
    far_ms, near_ms = choice.integer(0, 90 * DAY_MS), choice.integer(0, 10 * span_ms)
    back_ms = choice.of((1, window_ms, span_ms, near_ms, far_ms))
    return -back_ms if kind < 98 else back_ms


def _beside(choice: Choice, boundary_ms: int) -> int:
    return max(boundary_ms + choice.of((0, 0, -1, 1)), 0)


def amount(choice: Choice, settings: Settings, temper: Temper) -> float:
    """
    Draw what is recorded.

    Whole numbers, decimals, shares of what the bound allows, the same taken back, extremes.
    """
    kind = choice.integer(0, 99)
    if kind < 20:
        return float(choice.integer(0, 100))
    if kind < 55:
        return choice.integer(-1000, 100_000) / choice.of((10, 3, 1000, 7))
    if kind < 90 or temper.tame:
        return settings.burst * choice.of(SHARES)
    return choice.of((*EXTREMES, choice.real(), choice.real()))
