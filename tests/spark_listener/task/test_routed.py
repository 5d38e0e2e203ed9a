from typing import cast

import pytest

from quotascope.clients.accounting import Client, ClientTotals, Side, ThrottleAccount
from quotascope.spark_listener.task.rows import clipped
from quotascope.spark_listener.task.worker import RoutedAccount


def test_a_client_counts_in_the_task_that_runs() -> None:
    """Programs keep clients for the next task."""
    accounts = [ThrottleAccount(), ThrottleAccount()]
    running = 0
    routed = RoutedAccount(lambda: accounts[running])
    client = routed.client("alice", "etl", "write")
    client.throttled(250)
    running = 1
    client.throttled(30)
    client.retried()
    assert [sum(each.throttled_ms for each in one.totals()) for one in accounts] == [250, 30]  # fmt: skip
    assert client.totals == routed.totals()[0]
    assert client.totals.quota_retries == 1


def test_a_client_is_shown_before_it_is_throttled() -> None:
    """As in any account."""
    account = ThrottleAccount()
    RoutedAccount(lambda: account).client("alice", "etl", "read")
    assert account.totals() == (ClientTotals(Client("alice", "etl", "read")),)


def test_totals_of_others_are_added() -> None:
    """As in any account."""
    account = ThrottleAccount()
    told = ClientTotals(Client("alice", "etl", "read"), 7, 1, 7, 0, 2)
    RoutedAccount(lambda: account).add(told)
    assert account.totals() == (told._replace(recent_longest_ms=7),)


def test_long_names_are_cut_and_stay_apart() -> None:
    """Kafka takes client ids of 32 kB; an accumulator and a note should not."""
    account = ThrottleAccount()
    routed = RoutedAccount(lambda: account)
    for end in "ab":
        routed.client("alice", "x" * 10_000 + end, "read").throttled(1)
    names = [each.client.client_id for each in account.totals()]
    assert len(set(names)) == 2
    assert [len(name) for name in names] == [200, 200]
    assert [clipped(name) for name in names] == names


def test_a_side_must_be_one() -> None:
    """As in any account, a mistake is told where it is made."""
    with pytest.raises(ValueError, match="side is one of"):
        RoutedAccount(ThrottleAccount).client("", "etl", cast("Side", "w"))
