"""What a broker says itself of the throttle times that it reported."""

from tests.cluster.cluster import Cluster
from tests.integration import agent
from tests.integration.eventually import eventually

from quotascope.clients.accounting import ClientTotals, Side


class BrokerAccount:
    """All throttle times of one side since this began (`RequestMetrics`, mean times count)."""

    def __init__(self, kafka: Cluster, side: Side) -> None:
        self._url = kafka.brokers[0].agents.jolokia
        request = {"read": "FetchConsumer", "write": "Produce"}[side]
        self._bean = f"kafka.network:type=RequestMetrics,name=ThrottleTimeMs,request={request}"
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

    def _count(self) -> float:
        item = agent.ask(self._url, [{"type": "read", "mbean": self._bean}])[0]
        return float(item["value"]["Mean"] * item["value"]["Count"])
