"""The driver's sums of what tasks were told."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Container
from typing import Any

from quotascope.clients.accounting import OVERFLOW, ClientTotals, ThrottleAccount

from .rows import StrangeRow, is_count, totals_of
from .tally import VERSION

_LOG = logging.getLogger(__name__)
_MOST_QUERIES = 100
_MOST_STAGES = 10_000
_STRANGE = "throttle times of a task are not counted: it sent what this version of quotascope does not know"
_EMPTY: tuple[object, ...] = ()


class Ledger:
    """
    Sums by streaming query and client, in bounded space. All methods may be called from any thread.

    It is the value of an accumulator: see `Adding`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, ThrottleAccount] = {}
        self._stages: OrderedDict[int, None] = OrderedDict()

    def account(self, query: str) -> ThrottleAccount:
        """The counts of a query, by its id; empty for what belongs to none. Queries that come too late are counted as one."""
        with self._lock:
            if query not in self._accounts and len(self._accounts) >= _MOST_QUERIES:
                query = OVERFLOW
            return self._accounts.setdefault(query, ThrottleAccount())

    def add(self, sent: object) -> None:
        """Count what a task sent (`Tally`). Never raises: what is strange is left out, which the log says."""
        try:
            update = _update(sent)
        except (TypeError, ValueError):
            _LOG.warning(_STRANGE)
            return
        self._add(*update)

    def _add(self, stage: int, query: str, totals: list[ClientTotals]) -> None:
        account = self.account(query)
        for each in totals:
            account.add(each)
        with self._lock:
            self._stages[stage] = None
            if len(self._stages) > _MOST_STAGES:
                self._stages.popitem(last=False)

    def totals(self) -> tuple[tuple[str, ClientTotals], ...]:
        """The counts of each client so far, by the id of the streaming query."""
        with self._lock:
            accounts = sorted(self._accounts.items())
        return tuple(
            (query, each) for query, account in accounts for each in account.totals()
        )

    def stages(self) -> Container[int]:
        """The ids of the stages whose tasks sent something."""
        with self._lock:
            return frozenset(self._stages)


def _update(sent: Any) -> tuple[int, str, list[ClientTotals]]:  # noqa: ANN401 - whatever came
    version, stage, query, rows = sent
    if version != VERSION or not is_count(stage) or not isinstance(query, str):
        raise StrangeRow
    return stage, query, [totals_of(each) for each in rows]


class Adding:
    """How Spark adds to a ledger: an `AccumulatorParam`."""

    def zero(self, _ledger: object) -> tuple[object, ...]:
        """What a task begins with."""
        return _EMPTY

    def addInPlace(self, ledger: Ledger, sent: object) -> Ledger:  # noqa: N802 - Spark's name
        """Called by the thread of the accumulators' server, which an exception would end."""
        if sent != _EMPTY:
            ledger.add(sent)
        return ledger
