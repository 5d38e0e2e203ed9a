import logging
import threading

import pytest

from quotascope.clients.accounting import OVERFLOW, Client
from quotascope.spark_listener.task.throttles import Adding, ThrottleLedger

ROW = ("alice", "etl", "write", 250, 2, 200, 1)


def test_tasks_are_summed_by_query_and_client() -> None:
    """The longest is the longest of all, and counts as recent when it arrives."""
    ledger = ThrottleLedger()
    for query, throttled_ms in (("", 250), ("q", 30), ("", 70)):
        ledger.add((1, 3, query, ((*ROW[:3], throttled_ms, 2, throttled_ms, 1),)))
    (none, outside), (query, inside) = ledger.totals()
    assert (none, query) == ("", "q")
    assert outside.client == Client("alice", "etl", "write")
    assert (outside.throttled_ms, outside.responses, outside.quota_retries) == (320, 4, 2)  # fmt: skip
    assert (outside.longest_ms, outside.recent_longest_ms) == (250, 250)
    assert inside.throttled_ms == 30


def test_stages_are_remembered() -> None:
    """Those in which a scope was open, so that attempts which tell nothing can be counted; in bounded space."""
    ledger = ThrottleLedger()
    for stage in range(10_001):
        ledger.add((1, stage, "", ()))
    assert 0 not in ledger.stages()
    assert 1 in ledger.stages()
    assert 10_000 in ledger.stages()


@pytest.mark.parametrize(
    "sent",
    [
        None,
        5,
        (2, 3, "", ()),
        (1, 3, ""),
        (1, "3", "", ()),
        (1, 3, None, ()),
        (1, 3, "", (ROW[:-1],)),
        (1, 3, "", ((*ROW[:3], -1, 2, 3, 4),)),
        (1, 3, "", 7),
    ],
)
def test_what_is_strange_is_left_out(
    sent: object, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception would end the thread by which all accumulators of the job come home."""
    ledger = ThrottleLedger()
    with caplog.at_level(logging.WARNING):
        assert Adding().addInPlace(ledger, sent) is ledger
    assert ledger.totals() == ()
    assert "not counted" in caplog.text


def test_what_is_empty_is_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A task without a scope sends what it began with."""
    ledger = ThrottleLedger()
    Adding().addInPlace(ledger, Adding().zero(ledger))
    assert ledger.totals() == ()
    assert caplog.text == ""


def test_too_many_queries_are_counted_as_one() -> None:
    """Memory is bounded, and sums stay true."""
    ledger = ThrottleLedger()
    for number in range(150):
        ledger.add((1, 3, f"query-{number:03}", (ROW,)))
    totals = dict(ledger.totals())
    assert len(totals) == 101
    assert totals[OVERFLOW].throttled_ms == 50 * 250


def test_threads_do_not_lose_counts() -> None:
    """The accumulators' server and the driver's own scopes count at the same time."""
    ledger = ThrottleLedger()

    def work() -> None:
        for _ in range(500):
            ledger.add((1, 3, "", (ROW,)))
            ledger.account("").client("alice", "etl", "write").throttled(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((_, totals),) = ledger.totals()
    assert totals.throttled_ms == 4 * 500 * 251
