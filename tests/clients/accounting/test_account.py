import threading
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.clients.accounting import OVERFLOW, ClientTotals, Side, ThrottleAccount
from quotascope.clients.accounting.account import RecentLongest

STEPS = st.lists(st.tuples(st.integers(0, 1_000), st.floats(0, 200)), max_size=30)


def test_throttle_times_are_summed() -> None:
    """Responses without one do not count."""
    account = ThrottleAccount()
    client = account.client("alice", "etl", "write")
    for throttle_ms in (0, 250, 0, 100, -1):
        client.throttled(throttle_ms)
    client.retried()
    (totals,) = account.totals()
    assert totals == ClientTotals(client.totals.client, 350, 2, 250, 250, 1)


def test_one_quota_is_one_account() -> None:
    """Two clients of the same user, client id and side are counted together, the sides apart."""
    account = ThrottleAccount()
    account.client("alice", "etl", "read").throttled(1)
    account.client("alice", "etl", "read").throttled(2)
    account.client("alice", "etl", "write").throttled(4)
    assert [each.throttled_ms for each in account.totals()] == [3, 4]


def test_the_longest_of_late_passes() -> None:
    """The longest ever stays."""
    now = 0.0
    account = ThrottleAccount(clock=lambda: now)
    account.client("", "etl", "read").throttled(900)
    now = 500.0
    (totals,) = account.totals()
    assert (totals.longest_ms, totals.recent_longest_ms) == (900, 0)


def test_totals_of_others_are_added() -> None:
    """What tasks bring home adds up to what happened."""
    task, driver = ThrottleAccount(), ThrottleAccount()
    task.client("alice", "etl", "read").throttled(30)
    task.client("alice", "etl", "admin").retried()
    for _ in range(2):
        for totals in task.totals():
            driver.add(totals)
    admin, read = driver.totals()
    assert (read.throttled_ms, read.responses, read.longest_ms) == (60, 2, 30)
    assert admin.quota_retries == 2


def test_clients_that_come_too_late_are_counted_together() -> None:
    """Memory is bounded, and sums stay true."""
    account = ThrottleAccount(most_clients=2)
    for number in range(100):
        account.client("", f"client-{number}", "read").throttled(1)
    account.client("", "client-0", "read").throttled(1)
    totals = {each.client.client_id: each.throttled_ms for each in account.totals()}
    assert totals == {"client-0": 2, "client-1": 1, OVERFLOW: 98}


def test_a_side_must_be_one() -> None:
    """A mistake is reported where it is made."""
    with pytest.raises(ValueError, match="side is one of read, write, admin, not 'w'"):
        ThrottleAccount().client("", "etl", cast("Side", "w"))


def test_no_count_is_lost_between_threads() -> None:
    """Callbacks come on the threads of the libraries."""
    account = ThrottleAccount()

    def work() -> None:
        for _ in range(2_000):
            account.client("", "etl", "read").throttled(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.totals()[0].throttled_ms == 8_000


def test_what_is_recent_is_seen_and_forgotten() -> None:
    """Asking takes nothing away: a value is seen for a minute at least and two at most, also when no one asked meanwhile."""
    recent = RecentLongest(60, 100.0)
    recent.record(7, 119.0)
    assert [recent.value(at) for at in (119.0, 150.0, 179.0, 179.0, 239.0)] == [7, 7, 7, 7, 0]
    late = RecentLongest(60, 100.0)
    late.record(7, 119.0)
    assert late.value(239.0) == 0
    late.record(5, 240.0)
    late.record(3, 290.0)
    assert [late.value(at) for at in (300.0, 10_000.0)] == [5, 0]


@given(STEPS)
def test_it_lies_between_one_span_and_two(steps: list[tuple[int, float]]) -> None:
    """It is at least the maximum of the last span, at most that of the last two."""
    recent, now = RecentLongest(60, 0.0), 0.0
    seen: list[tuple[float, int]] = []
    for value, pause in steps:
        now += pause
        recent.record(value, now)
        seen.append((now, value))
        of_one = max(value for at, value in seen if at > now - 60)
        of_two = max(value for at, value in seen if at >= now - 120)
        assert of_one <= recent.value(now) <= of_two
