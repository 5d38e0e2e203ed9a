"""Throttle times of tasks come home, however they end: the sum over all attempts is the truth."""

import os
import sys
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark import RDD
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType
from tests.spark.reporting import Reported, Watched, first_attempt, rows

from quotascope.spark_listener.task import JobThrottles, throttle_scope

pytestmark = pytest.mark.real

Work = Callable[[Reported, JobThrottles], Iterable[int]]


@pytest.fixture
def reported(tmp_path: Path) -> Reported:
    return Reported(tmp_path, f"reported-{uuid.uuid4().hex[:12]}")


def fails_within(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    with throttles.scope() as account:
        list(rows(reported, account))
        if first_attempt():
            raise ValueError("no")
    return []


def fails_while_rows_are_made(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """A generator, which Spark runs."""
    with throttles.scope() as account:
        yield from rows(reported, account)
        if first_attempt():
            raise KeyError("no")


def is_wrapped_outside(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Fail with the note on the cause of another exception, which Python prints, too."""
    try:
        return list(fails_within(reported, throttles))
    except ValueError as error:
        raise RuntimeError("quotascope throttles: {}\nnot so") from error


def fails_in_the_second_scope(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Fail in a second scope, whose note has the counts of the first one and of an inner one."""
    with throttles.scope() as account:
        reported.report(account, 5)
        with throttle_scope() as inner:
            reported.report(inner, 7)
    return fails_within(reported, throttles)


def is_swallowed(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Fail in a scope whose error the task catches."""
    with suppress(ValueError):
        fails_within(reported, throttles)
    return []


def is_reported_late(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """After the scope, as by a flush."""
    with throttles.scope() as account:
        reported.report(account, 5)
    reported.report(account, 7)
    return []


def leaves(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Leave with an exception that is none of the ordinary kind."""
    with throttles.scope() as account:
        reported.report(account, 5)
        if first_attempt():
            sys.exit("no")
    return []


def has_an_old_exception(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Fail as on Pythons before 3.11, where exceptions have no notes."""

    class OldError(ValueError):
        @property
        def add_note(self) -> object:  # type: ignore[override]
            raise AttributeError

    with throttles.scope() as account:
        reported.report(account, 5)
        if first_attempt():
            raise OldError("no")
    return []


def tasks(watched: Watched, reported: Reported, work: Work, number: int = 2) -> RDD[int]:
    throttles = watched.throttles
    numbers = watched.spark.sparkContext.parallelize(range(number), number)
    return numbers.mapPartitions(lambda _: work(reported, throttles))


@pytest.mark.parametrize(
    "work",
    [
        fails_within,
        fails_while_rows_are_made,
        is_wrapped_outside,
        fails_in_the_second_scope,
        is_swallowed,
        is_reported_late,
        leaves,
        has_an_old_exception,
    ],
)
def test_the_sum_over_attempts_is_the_truth(watched: Watched, reported: Reported, work: Work) -> None:
    """The sum over attempts is true to the millisecond, and no attempt is unknown."""
    unknown = watched.unknown()
    tasks(watched, reported, work).count()
    counts = watched.counted(reported.client_id)
    truth = reported.truth()
    assert counts.throttled_ms == sum(truth) > 0
    assert counts.responses == len(truth)
    assert counts.queries == {""}
    assert watched.unknown() == unknown


def test_a_task_that_runs_its_function_again(watched: Watched, reported: Reported) -> None:
    """The function runs under `coalesce`, for one partition after the other, in one process: each time counts once."""
    tasks(watched, reported, is_reported_late, 3).coalesce(1).count()
    counts = watched.counted(reported.client_id)
    assert (counts.throttled_ms, counts.responses) == (sum(reported.truth()), 6)


def test_a_udf_counts(watched: Watched, reported: Reported) -> None:
    """A UDF counts, although Spark shortens its traceback and its tasks know the driver only by sent data."""

    def work(number: int) -> int:
        with throttle_scope() as account:
            reported.report(account, number)
            if number == 3 and first_attempt():
                raise ValueError("no")
        return number

    numbers = watched.spark.range(1, 5, 1, 1).select(udf(work, LongType(), useArrow=False)("id"))
    assert len(numbers.collect()) == 4
    counts = watched.counted(reported.client_id)
    assert counts.throttled_ms == sum(reported.truth()) == 16


def test_what_is_evaluated_twice_waited_twice(watched: Watched, reported: Reported) -> None:
    """Throttles of rows that Spark evaluates twice count twice, as brokers reported them."""
    numbers = tasks(watched, reported, is_reported_late, 1)
    numbers.count()
    numbers.count()
    assert watched.counted(reported.client_id).throttled_ms == sum(reported.truth()) == 24


def makes_rows(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Yield more rows than are wanted."""
    with throttles.scope() as account:
        yield from rows(reported, account)


def test_rows_that_no_one_wants_were_still_waited_for(watched: Watched, reported: Reported) -> None:
    """Throttles count when Spark closes a generator early."""
    assert tasks(watched, reported, makes_rows, 1).take(1) == [250]
    assert watched.counted(reported.client_id).throttled_ms == sum(reported.truth()) > 0


def keeps_its_client(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Keep the client for the next task in the process."""
    kept = sys.__dict__
    with throttles.scope() as account:
        if reported.client_id not in kept:
            kept[reported.client_id] = account.client("alice", reported.client_id, "write")
        reported.write(7)
        kept[reported.client_id].throttled(7)
    return [os.getpid()]


def test_clients_may_be_kept_for_the_next_task(watched: Watched, reported: Reported) -> None:
    """A worker runs several; its client counts in whichever runs."""
    numbers = tasks(watched, reported, keeps_its_client, 4)
    workers = set(numbers.collect() + numbers.collect())
    assert len(workers) < 8
    assert watched.counted(reported.client_id).throttled_ms == 8 * 7


def dies(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Die like a process that is killed for its memory."""
    with throttles.scope() as account:
        reported.report(account, 5)
        if first_attempt():
            os._exit(1)
    return []


def fails_elsewhere(reported: Reported, throttles: JobThrottles) -> Iterable[int]:
    """Throttle times without an open scope are counted."""
    with throttles.scope() as account:
        reported.report(account, 5)
    if first_attempt():
        raise ValueError("no")
    return []


@pytest.mark.parametrize("work", [dies, fails_elsewhere])
def test_an_attempt_that_reports_nothing_is_known_to_be_unknown(
    watched: Watched, reported: Reported, work: Work
) -> None:
    """An attempt that reports nothing counts as unknown where other tasks of its stage had scopes."""
    unknown = watched.unknown()
    tasks(watched, reported, work).count()
    counts = watched.counted(reported.client_id)
    assert (sum(reported.truth()), counts.throttled_ms) == (15, 10)
    assert watched.unknown() == unknown + 1


def test_a_streaming_query_is_named(watched: Watched, reported: Reported) -> None:
    """Throttle times of a query's tasks, which may fail, and of the driver's part have the query's name."""

    def work(_: Iterable[object]) -> None:
        with throttle_scope() as account:
            reported.report(account, 5)
            if first_attempt():
                raise ValueError("no")

    def batch(frame: object, _number: int) -> None:
        with throttle_scope() as account:
            reported.report(account, 100)
        frame.rdd.foreachPartition(work)  # type: ignore[attr-defined]

    name = f"query-{uuid.uuid4().hex[:12]}"
    source = reported.folder.parent / f"{reported.client_id}-source"
    source.mkdir()
    (source / "a.txt").write_text("one\ntwo\n")
    query = (
        watched.spark.readStream.text(str(source))
        .writeStream.queryName(name)
        .foreachBatch(batch)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    counts = watched.counted(reported.client_id)
    truth = reported.truth()
    assert counts.throttled_ms == sum(truth)
    assert (truth.count(100), truth.count(5)) == (1, 2)
    assert counts.queries == {name}
