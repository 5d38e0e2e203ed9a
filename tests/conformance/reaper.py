"""Vectors about throttled channels and the reaper that ends their throttles."""

from tests.conformance import expectations
from tests.conformance.fields import Fields, as_integer
from tests.conformance.runner import Runner

from quotascope.metrics import (
    KafkaRelease,
    QuotaType,
    Registry,
    ThrottleCallback,
    ThrottledChannel,
    ThrottledChannelReaper,
)

NANOS_PER_MS = 1_000_000


class Callbacks(ThrottleCallback):
    """Counts what channels are told."""

    def __init__(self) -> None:
        self.started = 0
        self.ended = 0

    def start_throttling(self) -> None:
        """One more throttle."""
        self.started += 1

    def end_throttling(self) -> None:
        """One throttle less."""
        self.ended += 1


class ReaperRunner(Runner):
    """Throttles channels at the start and ends their throttles in turn."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._callbacks = Callbacks()
        self._reaper = ThrottledChannelReaper(
            Registry(), QuotaType.PRODUCE, self._origin_ms
        )
        for throttle_ms in config.several("throttle_ms", as_integer):
            self._reaper.throttle(
                throttle_ms,
                self._callbacks,
                now_ms=self._origin_ms,
                now_ns=self._origin_ms * NANOS_PER_MS,
            )

    def op_started(self, step: Fields) -> None:
        """Ask how many throttles have started."""
        expectations.number(step, self._callbacks.started)

    def op_reap(self, step: Fields) -> None:
        """One turn; callbacks are counted from the start."""
        now_ms = self.now_ms(step)
        self._reaper.reap(now_ms, now_ms * NANOS_PER_MS)
        expectations.number(step, self._callbacks.ended, "expect_callbacks")
        expectations.number(step, len(self._reaper.queue), "expect_queue_size")


class ThrottledChannelRunner(Runner):
    """Asks throttled channels how long they have to wait."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        now_ns = self._origin_ms * NANOS_PER_MS
        self._channels = [
            ThrottledChannel(throttle_ms, Callbacks(), now_ns)
            for throttle_ms in config.several("throttle_ms", as_integer)
        ]

    def op_delay_ms(self, step: Fields) -> None:
        """Ask all of them, in the order they were made."""
        now_ns = self.now_ms(step) * NANOS_PER_MS
        delays = [channel.delay_ms(now_ns) for channel in self._channels]
        if "expect" in step:
            expectations.same(delays, step.several("expect", as_integer), "delays")
