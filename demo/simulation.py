"""The whole demo as a function of time: the engine, its rules, and the clients at work on it."""

from collections.abc import Mapping, Sequence

from quotascope.metrics import QuotaEntity, QuotaManagers, QuotaType, Registry

from .broker import Broker
from .cast import CAST, Role
from .client import DemoClient
from .connection import DemoConnection
from .rules import RULES


class Simulation:
    """
    Real quotas, made-up traffic.

    Nothing here reads a clock or sleeps: `advance` does what is due at the time that it is given.

    Args:
        start_ms: when the clients begin, in epoch ms.
        cast: the clients.
        rules: the quotas, with bounds in Kafka's units.

    """

    def __init__(
        self,
        start_ms: int,
        cast: Sequence[Role] = CAST,
        rules: Mapping[QuotaType, Mapping[QuotaEntity, float]] = RULES,
    ) -> None:
        self.registry = Registry()
        self.quotas = QuotaManagers(self.registry, start_ms)
        _configure(self.quotas, rules)
        self._broker = Broker(self.quotas)
        self._clients = [
            (DemoClient(role, start_ms), DemoConnection(role.user, role.client_id))
            for role in cast
        ]

    def advance(self, now_ms: int) -> int:
        """Let everything happen that is due at `now_ms`; return when something is due next. Both are epoch ms."""
        self._broker.reap(now_ms)
        for client, connection in self._clients:
            if client.due_ms <= now_ms and connection.is_read:
                self._exchange(client, connection, now_ms)
        return min(client.due_ms for client, _ in self._clients)

    def _exchange(
        self, client: DemoClient, connection: DemoConnection, now_ms: int
    ) -> None:
        thread_ms = client.role.thread_ms
        response = self._broker.handle(connection, client.request, thread_ms, now_ms)
        client.answered(response, now_ms)


def _configure(
    quotas: QuotaManagers, rules: Mapping[QuotaType, Mapping[QuotaEntity, float]]
) -> None:
    for quota_type, bounds in rules.items():
        for entity, bound in bounds.items():
            quotas.update_quota(quota_type, entity, bound)
