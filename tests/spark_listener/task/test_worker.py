"""Counting in a worker's process, which runs tasks one after the other."""

import logging
import pickle
import threading
import time
from collections.abc import Generator, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import accumulators

from quotascope.clients.accounting import Client, ClientTotals, Side, ThrottleAccount
from quotascope.spark_listener.task import note, worker
from quotascope.spark_listener.task.rows import clipped
from quotascope.spark_listener.task.worker import PythonWorker, RoutedAccount, TaskScope, worker_of

NUMBER = 4711
CLIENT = Client("alice", "etl", "write")


def task_of(task: int, query: str | None = None) -> Any:
    """Return a `TaskContext` with the attributes that a scope uses."""
    return SimpleNamespace(
        stageId=lambda: 3,
        attemptNumber=lambda: 0,
        taskAttemptId=lambda: task,
        getLocalProperty={"sql.streaming.queryId": query}.get,
    )


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, Any]]:
    """Yield the updates that Spark's worker sends when a task has succeeded."""
    registered: dict[int, Any] = {}
    monkeypatch.setattr(accumulators, "_accumulatorRegistry", registered)
    monkeypatch.setattr(worker, "_WORKERS", {})
    yield registered
    registered.clear()
    for python_worker in worker._WORKERS.values():
        python_worker._spool = None  # ends the thread


def scope_of(task: int, query: str | None = None, accumulator: int | None = NUMBER) -> TaskScope:
    return TaskScope(worker_of(accumulator), task_of(task, query))


def sent(registry: dict[int, Any]) -> Any:
    """Return the update of the task that ends now; Spark forgets it before the next."""
    update = pickle.loads(pickle.dumps(registry[NUMBER]._value))  # noqa: S301 - as Spark does
    registry.clear()
    return update


def test_a_task_sends_all_its_throttle_times(registry: dict[int, Any]) -> None:
    """
    Times of all scopes arrive, as plain tuples of Python's own numbers.

    The scopes follow each other or are nested; a time after them counts, too.

    The driver needs no class of ours, and may lack the library of the numbers that a task counts with.
    """
    fraction: Any = Fraction(1)
    with scope_of(5, "a-query") as account:
        client = account.client("alice", "etl", "write")
        client.throttled(fraction)
        with scope_of(5, "a-query") as inner:
            inner.client("alice", "etl", "write").throttled(2)
    with scope_of(5, "a-query") as later:
        later.client("alice", "etl", "write").throttled(4)
    client.throttled(8)
    update = sent(registry)
    assert update == (1, 3, "a-query", (("alice", "etl", "write", 15, 4, 8, 0),))
    assert {type(number) for number in update[3][0][3:]} == {int}


def test_a_kept_client_counts_in_the_task_that_runs(registry: dict[int, Any]) -> None:
    """Times between two tasks wait for the scope of the second, also of a client that the first never used."""
    with scope_of(5) as account:
        client = account.client("alice", "etl", "write")
        idle = account.client("alice", "idle", "read")
        client.throttled(1)
    first_update = sent(registry)
    client.throttled(2)
    idle.retried()
    account.client("alice", "late", "read").throttled(7)
    assert registry == {}
    with scope_of(6) as later:
        client.throttled(4)
    second = sent(registry)
    assert first_update[3] == (("alice", "etl", "write", 1, 1, 1, 0), ("alice", "idle", "read", 0, 0, 0, 0))
    assert [(row[1], row[3], row[4], row[6]) for row in second[3]] == [
        ("etl", 6, 2, 0),
        ("idle", 0, 0, 1),
        ("late", 7, 1, 0),
    ]
    assert client.totals == later.totals()[0]


def test_a_failing_task_has_a_note_of_the_whole_attempt() -> None:
    """Each scope that an exception leaves writes the note of the whole attempt again."""

    def work() -> None:
        with scope_of(5, "a-query") as account:
            client = account.client("alice", "etl", "write")
            client.throttled(1)
            try:
                with scope_of(5, "a-query"):
                    raise ValueError
            finally:
                client.throttled(2)

    with pytest.raises(ValueError) as failed:
        work()
    assert len(failed.value.__notes__) == 1
    attempt_note = noted(failed.value, 5)
    assert (attempt_note.query, [totals.throttled_ms for totals in attempt_note.totals]) == ("a-query", [3])


def test_a_closed_generator_is_no_failure() -> None:
    """A generator that Spark closes early is no failure."""

    def rows() -> Generator[int, None, None]:
        with scope_of(5):
            yield 1

    generator = rows()
    next(generator)
    closing = GeneratorExit()
    with pytest.raises(GeneratorExit):
        generator.throw(closing)
    assert not hasattr(closing, "__notes__")


def test_a_worker_without_an_accumulator_says_so(registry: dict[int, Any], caplog: pytest.LogCaptureFixture) -> None:
    """The warning comes once, and failures still have their notes."""
    error = ValueError("no")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with pytest.raises(ValueError, match="no"), scope_of(5, accumulator=None):
                raise error
    assert len(caplog.records) == 1
    assert "only failed attempts report" in caplog.text
    assert registry == {}
    assert noted(error, 5).totals == ()


def test_a_task_without_numbers_runs(caplog: pytest.LogCaptureFixture) -> None:
    """A task without the numbers of its attempt runs, as the program matters more than its counts."""
    with TaskScope(PythonWorker(NUMBER), cast("Any", object())) as account:
        account.client("alice", "etl", "write").throttled(1)
    assert "are not counted" in caplog.text


def test_a_routed_account_is_like_any_other() -> None:
    """A client is there before it is throttled, totals of others are added, and an unknown side is refused."""
    account = ThrottleAccount()
    routed = RoutedAccount(lambda: account)
    routed.client("alice", "etl", "read")
    assert account.totals() == (ClientTotals(Client("alice", "etl", "read")),)
    totals = ClientTotals(Client("alice", "etl", "read"), 7, 1, 7, 0, 2)
    routed.add(totals)
    assert account.totals() == (totals._replace(recent_longest_ms=7),)
    with pytest.raises(ValueError, match="side is one of"):
        routed.client("", "etl", cast("Side", "w"))


def test_long_names_are_cut_and_stay_apart() -> None:
    """Kafka accepts client ids of 32 kB; an accumulator and a note should not."""
    account = ThrottleAccount()
    routed = RoutedAccount(lambda: account)
    for end in "ab":
        routed.client("alice", "x" * 10_000 + end, "read").throttled(1)
    names = [totals.client.client_id for totals in account.totals()]
    assert len(set(names)) == 2
    assert [len(name) for name in names] == [200, 200]
    assert [clipped(name) for name in names] == names


def test_a_folder_of_the_program_is_not_the_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark's local directories there is no plugin, even if the task runs beside a folder of its name."""
    (tmp_path / "quotascope").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    with scope_of(9, accumulator=None) as account:
        account.client("alice", "etl", "write").throttled(5)
    assert [*(tmp_path / "quotascope").iterdir()] == []


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an executor's plugin."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    folder = tmp_path / "quotascope"
    folder.mkdir()
    return folder


def left(spool: Path) -> list[str]:
    """Return the lines that the plugin would read."""
    files = sorted(spool.glob("*.txt"))
    return [line for file in files for line in file.read_text().splitlines()]


def left_ms(spool: Path) -> int:
    return sum(int(line.split()[-3]) for line in left(spool))


def noted(error: BaseException, task: int) -> note.Note:
    attempt_note = note.read("\n".join(error.__notes__), note.AttemptKey(3, 0, task))
    assert attempt_note is not None
    return attempt_note


class Turns:
    """Turns of the reporting thread, which sleeps until a test gives it one."""

    def __init__(self) -> None:
        self._asleep = threading.Semaphore(0)
        self.awake = threading.Semaphore(0)

    def sleep(self, _seconds: float) -> None:
        self._asleep.release()
        self.awake.acquire()

    def take(self) -> None:
        """Returns when the thread sleeps again."""
        self._asleep.acquire()
        self.awake.release()
        self._asleep.acquire()
        self._asleep.release()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch, spool: Path) -> Iterator[Turns]:
    """Yield the turns of the reporting thread, where there is a plugin."""
    assert spool.is_dir()
    turns = Turns()
    clock = SimpleNamespace(sleep=turns.sleep, monotonic=time.monotonic)
    monkeypatch.setattr(worker, "time", clock)
    yield turns
    for python_worker in worker._WORKERS.values():
        python_worker._spool = None
        turns.awake.release()


def test_a_task_that_runs_reports_to_the_plugin(spool: Path, turns: Turns, registry: dict[int, Any]) -> None:
    """A time in its scope or after it is reported once; the accumulator gets the rest, and all repeated admin calls."""
    with scope_of(6) as account:
        client = account.client("alice", "etl", "write")
        client.throttled(250)
        turns.take()
        turns.take()
        client.throttled(30)
        client.retried()
        turns.take()
        client.throttled(7)
    assert sorted(left(spool)) == [" alice etl write 250 1 250", " alice etl write 30 1 30"]
    assert sent(registry)[3] == (("alice", "etl", "write", 7, 1, 7, 1),)
    turns.take()
    assert left_ms(spool) == 280
    client.throttled(9)
    turns.take()
    assert left_ms(spool) == 289
    with scope_of(7):
        assert sent(registry)[3] == ()


def test_a_task_that_fails_after_a_report(spool: Path, turns: Turns) -> None:
    """The note of a failed task has the unreported rest apart, which the plugin does not get."""

    def fail() -> None:
        with scope_of(6) as account:
            client = account.client("alice", "etl", "write")
            client.throttled(250)
            turns.take()
            client.throttled(4)
            raise ValueError

    with pytest.raises(ValueError) as failed:
        fail()
    turns.take()
    assert left_ms(spool) == 250
    attempt_note = noted(failed.value, 6)
    assert attempt_note.totals == (ClientTotals(CLIENT, 4, 1, 4),)
    assert attempt_note.reported == (ClientTotals(CLIENT, 250, 1, 250),)


def test_an_exception_that_is_caught_after_a_report(spool: Path, turns: Turns, registry: dict[int, Any]) -> None:
    """The counts of its note arrive by the accumulator, once."""
    with scope_of(6) as account:
        client = account.client("alice", "etl", "write")
        client.throttled(250)
        turns.take()
        client.throttled(4)
        with pytest.raises(ValueError, match="no"), scope_of(6):
            raise ValueError("no")
        turns.take()
        client.throttled(2)
    assert left_ms(spool) == 250
    assert sent(registry)[3] == (("alice", "etl", "write", 6, 2, 6, 0),)


def test_a_task_that_sends_twice(registry: dict[int, Any]) -> None:
    """
    A second function in the same process, as under `coalesce`, sends what the first did not.

    If it fails, Spark drops that, and its note has both.
    """

    def work(throttled_ms: int) -> None:
        with scope_of(5) as account:
            account.client("alice", "etl", "write").throttled(throttled_ms)
            if throttled_ms == 4:
                raise ValueError

    for throttled_ms in (1, 2):
        work(throttled_ms)
        assert sent(registry)[3][0][3] == throttled_ms
    with pytest.raises(ValueError) as failed:
        work(4)
    assert noted(failed.value, 5).whole == (ClientTotals(CLIENT, 7, 3, 4),)


def test_the_plugin_gets_what_no_accumulator_takes(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin gets each time once, in a file for each scope that succeeds, and a note has only the rest."""

    def fail() -> None:
        with scope_of(6, "a query", None):
            client.throttled(4)
            raise ValueError

    with scope_of(6, "a query", None) as account:
        client = account.client("a b\n", "é", "write")
        client.throttled(250)
    assert left(spool) == ["a%20query a%20b%0A %C3%A9 write 250 1 250"]
    with pytest.raises(ValueError) as failed:
        fail()
    assert noted(failed.value, 6).totals == (ClientTotals(Client("a b\n", "é", "write"), 4, 1, 4),)
    assert len(left(spool)) == 1
    monkeypatch.setattr(Path, "rename", Path.readlink)  # which fails here
    with scope_of(6, "a query", None):
        client.throttled(8)
