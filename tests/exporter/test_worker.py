from __future__ import annotations

import asyncio
import threading

import pytest

from quotascope.exporter.errors import LimitsError
from quotascope.exporter.worker import Worker


def _raise(error: Exception) -> None:
    raise error


async def test_result_and_exception_come_back() -> None:
    """A call in the thread looks like a call."""
    worker = Worker("test", LimitsError)
    assert await worker.run(threading.current_thread) is not threading.main_thread()
    with pytest.raises(KeyError):
        await worker.run(lambda: _raise(KeyError("x")))
    assert await worker.run(lambda: 5) == 5


async def test_abandoned_call_blocks_nobody_and_is_not_repeated() -> None:
    """While a call hangs the next one is refused at once; when it ends, calls work again."""
    worker = Worker("test", LimitsError)
    release, ended = threading.Event(), threading.Event()

    def hang() -> None:
        release.wait()
        ended.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await worker.run(hang)
    with pytest.raises(LimitsError, match="the last attempt has not ended yet"):
        await worker.run(lambda: 5)
    release.set()
    await asyncio.to_thread(ended.wait)
    while True:
        try:
            assert await worker.run(lambda: 5) == 5
        except LimitsError:
            await asyncio.sleep(0)
        else:
            break


async def test_abandoned_call_that_fails_later_is_silent() -> None:
    """Nobody is left to tell."""
    worker = Worker("test", LimitsError)
    release = threading.Event()

    def fail() -> None:
        release.wait()
        raise KeyError

    task = asyncio.create_task(worker.run(fail))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()


def test_call_that_outlives_the_loop_ends_quietly() -> None:
    """At shutdown the result has nowhere to go, which is no error."""
    worker = Worker("test", LimitsError)
    release = threading.Event()
    threads: list[threading.Thread] = []

    def hang() -> None:
        threads.append(threading.current_thread())
        release.wait()

    async def start() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await worker.run(hang)

    asyncio.run(start())
    release.set()
    threads[0].join()
    assert threads[0].daemon


async def test_close_runs_beside_a_call_that_hangs() -> None:
    """What ends the connection does not wait for what the connection waits for, nor does its failure matter."""
    worker = Worker("test")
    release = threading.Event()

    def close() -> None:
        release.set()
        raise KeyError

    task = asyncio.create_task(worker.run(release.wait))
    await asyncio.sleep(0)
    await worker.close(close)
    assert await task


async def test_close_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter ends all the same, and its loop has gone on meanwhile."""
    monkeypatch.setattr("quotascope.exporter.worker._LONGEST_CLOSE_SECONDS", 0.001)
    release = threading.Event()
    await Worker("test").close(release.wait)
    release.set()
