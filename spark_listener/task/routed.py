"""An account that outlives a task: its clients feed the task that runs, whichever it is."""

from __future__ import annotations

import time
from typing import Callable

from quotascope.clients.accounting import (
    Client,
    ClientAccount,
    ClientTotals,
    Side,
    ThrottleAccount,
)

from .names import clipped

Route = Callable[[], ThrottleAccount]
"""The account of the task that runs now."""


class RoutedAccount(ThrottleAccount):
    """
    Counts for the task that runs now. A worker's process runs one after the other, and programs keep their producers for the next.

    The totals are those of the running task.
    """

    def __init__(self, route: Route) -> None:
        super().__init__()
        self._route = route

    def client(self, user: str, client_id: str, side: Side) -> ClientAccount:
        """The counts of one client, in this task and in those that follow. Raises `ValueError` for an unknown side."""
        client = Client(clipped(user), clipped(client_id), side)
        self._route().client(*client)
        return _RoutedClient(client, self._route)

    def totals(self) -> tuple[ClientTotals, ...]:
        """The counts of each client in this task so far."""
        return self._route().totals()


class _RoutedClient(ClientAccount):
    __slots__ = ("_client", "_route")

    def __init__(self, client: Client, route: Route) -> None:
        super().__init__(client, time.monotonic)
        self._client = client
        self._route = route

    @property
    def totals(self) -> ClientTotals:
        """The counts in this task so far."""
        return self._route().client(*self._client).totals

    def _count(
        self, throttled_ms: int, responses: int, longest_ms: int, quota_retries: int
    ) -> None:
        told = ClientTotals(self._client, throttled_ms, responses, longest_ms)
        self._route().add(told._replace(quota_retries=quota_retries))
