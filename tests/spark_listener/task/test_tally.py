import pickle
from fractions import Fraction
from typing import Any

from quotascope.clients.accounting import Client
from quotascope.spark_listener.task.attempt import AttemptKey
from quotascope.spark_listener.task.worker import AttemptCounter


def tally_of(task: int = 5) -> AttemptCounter:
    """Of one attempt."""
    return AttemptCounter(AttemptKey(3, 0, task), "a-query")


def sent(tally: AttemptCounter) -> Any:
    """What arrives."""
    return pickle.loads(pickle.dumps(tally))  # noqa: S301 - as a worker does


def test_it_is_sent_as_plain_tuples() -> None:
    """The driver needs no class of ours to read them, and what was told last is in them."""
    tally = tally_of()
    client = tally.account.client("alice", "etl", "write")
    client.throttled(250)
    client.throttled(30)
    client.retried()
    row = ("alice", "etl", "write", 280, 2, 250, 1)
    assert sent(tally) == (1, 3, "a-query", (row,))


def test_numbers_of_others_become_pythons_own() -> None:
    """The driver may not have the library whose numbers a task counts with."""
    tally = tally_of()
    told: Any = Fraction(250)
    tally.account.client("alice", "etl", "write").throttled(told)
    *_, ((*_, throttled_ms, _responses, longest_ms, _retries),) = sent(tally)
    assert [type(throttled_ms), type(longest_ms)] == [int, int]


def test_what_was_told_too_late_goes_to_the_next() -> None:
    """A producer that is kept for the next task goes on listening."""
    first, second = tally_of(5), tally_of(6)
    client = first.account.client("alice", "etl", "write")
    idle = first.account.client("alice", "idle", "read")
    client.throttled(250)
    first.send()
    assert list(first.rest()) == []
    client.throttled(30)
    idle.retried()
    second.take_over(first)
    etl, rest = second.account.totals()
    assert (etl.throttled_ms, etl.responses) == (30, 1)
    assert (rest.client, rest.quota_retries) == (Client("alice", "idle", "read"), 1)


def test_a_client_that_was_never_sent_is_all_rest() -> None:
    """It was made when the task was over."""
    first = tally_of()
    first.send()
    first.account.client("alice", "late", "read").throttled(7)
    (late,) = first.rest()
    assert late.throttled_ms == 7
