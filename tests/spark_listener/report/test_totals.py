"""Which rows of the account are told, and in what order."""

from types import SimpleNamespace
from typing import Any

import pytest

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.report.totals import duration, waits

CLIENT = Client("alice", "etl", "write")


def _account(*totals: ClientTotals) -> Any:
    return SimpleNamespace(throttles=[("", each) for each in totals])


@pytest.mark.parametrize(
    "some",
    [
        ClientTotals(CLIENT, throttled_ms=1),
        ClientTotals(CLIENT, responses=1),
        ClientTotals(CLIENT, quota_retries=1),
    ],
)
def test_any_count_is_worth_a_row(some: ClientTotals) -> None:
    """A throttle time, a response that told one, or a call that was repeated; a client without any is none that waited."""
    account = _account(ClientTotals(CLIENT), some)
    assert [totals for _, totals in waits(account)] == [some]


def test_who_waited_longest_is_first() -> None:
    """Whatever else was counted."""
    rows = [ClientTotals(CLIENT, throttled_ms=ms, responses=9 - ms) for ms in (1, 3, 2)]
    found = [totals.throttled_ms for _, totals in waits(_account(*rows))]
    assert found == [3, 2, 1]


@pytest.mark.parametrize(
    ("ms", "told"), [(None, "unknown"), (0, "0 s"), (1_500, "1.50 s")]
)
def test_an_unknown_duration_is_not_none(ms: int | None, told: str) -> None:
    """Nor the other way round."""
    assert duration(ms) == told
