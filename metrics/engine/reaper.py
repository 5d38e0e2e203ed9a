"""The end of throttles: due channels are taken out of the delay queue one at a time."""

from ..kafka.entities import QuotaType
from .cumulative import CumulativeSum
from .delay_queue import DelayQueue, ThrottledChannel
from .registry import Registry
from .throttle_callback import ThrottleCallback


class ThrottledChannelReaper:
    """
    The delay queue of one quota type and its metric (Kafka: `ThrottledChannelReaper`, `<Type>-delayQueue`).

    The metric `queue-size`, without tags, is the live signal of muted channels. It never expires. Reapers of one
    type over one registry share it, and it shows the sum.

    Args:
        registry: where the metric goes.
        quota_type: of the throttles.
        now_ms: epoch ms.

    """

    def __init__(self, registry: Registry, quota_type: QuotaType, now_ms: int) -> None:
        group = quota_type.group
        self.queue = DelayQueue()
        self._size = registry.sensor(f"{group}-delayQueue", now_ms)
        name = registry.metric_name("queue-size", group, (), "Tracks the size of the delay queue")
        self._size.add(name, CumulativeSum())

    def throttle(self, throttle_time_ms: int, callback: ThrottleCallback, *, now_ms: int, now_ns: int) -> None:
        """Put a channel into the queue, for `throttle_time_ms` from the monotonic `now_ns` on."""
        self.queue.add(ThrottledChannel(throttle_time_ms, callback, now_ns))
        self._size.record(1.0, now_ms)

    def reap(self, now_ms: int, now_ns: int) -> bool:
        """
        End the throttle that is due first; False if none is due at the monotonic `now_ns`.

        At most one, as an iteration of Kafka's reaper thread; call until False to end all that are due.
        """
        channel = self.queue.poll(now_ns)
        if channel is None:
            return False
        self._size.record(-1.0, now_ms)
        channel.notify_throttling_done()
        return True
