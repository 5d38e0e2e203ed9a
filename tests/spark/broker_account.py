"""What a broker says itself of the throttle times that it reported."""

from functools import partial

from tests.cluster.cluster import Cluster
from tests.integration import agent
from tests.integration.eventually import eventually

from quotascope.clients.accounting import ClientTotals, Side


def reported_ms(kafka: Cluster, side: Side) -> float:
    """All throttle times of one side that the broker has reported (`RequestMetrics`, mean times count)."""
    request = {"read": "FetchConsumer", "write": "Produce"}[side]
    bean = f"kafka.network:type=RequestMetrics,name=ThrottleTimeMs,request={request}"
    (item,) = agent.ask(kafka.brokers[0].agents.jolokia, [{"type": "read", "mbean": bean}])
    return float(item["value"]["Mean"] * item["value"]["Count"])


class BrokerAccount:
    """All throttle times of one side since this began."""

    def __init__(self, kafka: Cluster, side: Side) -> None:
        self._count = partial(reported_ms, kafka, side)
        self._before = self._count()

    def agrees(self, totals: ClientTotals) -> None:
        """To the ms; of fetches the broker may have answered one more, for which no one waits any longer."""
        missing = totals.longest_ms if totals.client.side == "read" else 0
        assert totals.throttled_ms > 1_000
        assert totals.throttled_ms <= totals.responses * totals.longest_ms

        def look() -> None:
            counted = self._count() - self._before
            assert totals.throttled_ms - 1 <= counted <= totals.throttled_ms + missing + 1

        eventually(look, seconds=10)
