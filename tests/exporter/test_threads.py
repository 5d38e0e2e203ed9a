from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from quotascope.exporter.errors import LimitsError, SourceUnreachable
from quotascope.exporter.threads import ANSWERS, BlockingCalls, answer_thread

OWNERS: dict[str, Callable[[], BlockingCalls]] = {
    "Admin API": lambda: BlockingCalls("test", LimitsError),
    "source": answer_thread,
}


async def abandoned(calls: BlockingCalls, call: Callable[[], object], begun: Event) -> None:
    task = asyncio.create_task(calls.run(call))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("pool", [None, ANSWERS])
async def test_result_and_exception_come_back(pool: ThreadPoolExecutor | None) -> None:
    """A call in a thread returns its result or raises its exception."""
    calls = BlockingCalls("test", LimitsError)
    thread = await calls.run(threading.current_thread, pool)
    assert thread is not threading.main_thread()
    assert thread.daemon is (pool is None)
    with pytest.raises(KeyError):
        await calls.run(lambda: dict[str, int]()["x"], pool)
    assert await calls.run(lambda: 5, pool) == 5


@pytest.mark.parametrize(
    ("owner", "error", "text"),
    [
        ("Admin API", LimitsError, "the last attempt has not ended yet"),
        ("source", SourceUnreachable, r"still being read.*max_answer_bytes"),
    ],
)
async def test_an_abandoned_call_is_not_repeated(owner: str, error: type[Exception], text: str) -> None:
    """While an abandoned call hangs, its owner's next one is refused at once and those of other owners are not."""
    calls, begun, release = OWNERS[owner](), Event(), Event()

    def hang() -> None:
        begun.set()
        release.wait()

    await abandoned(calls, hang, begun)
    with pytest.raises(error, match=text):
        calls.check()
    with pytest.raises(error, match=text):
        await calls.run(lambda: 5)
    assert await OWNERS[owner]().run(lambda: 5) == 5
    release.set()
    while True:  # until the call has ended
        with suppress(error):
            assert await calls.run(lambda: 5) == 5
            break
        await asyncio.sleep(0)


async def test_an_abandoned_call_that_fails_later_is_silent() -> None:
    """The error of an abandoned call is dropped silently."""
    begun, release = Event(), Event()

    def fail() -> None:
        begun.set()
        release.wait()
        raise KeyError

    await abandoned(BlockingCalls("test"), fail, begun)
    release.set()


def test_a_call_that_outlives_the_loop_ends_quietly() -> None:
    """A call that outlives the loop ends without an error, and its thread keeps no process alive."""
    release = Event()
    threads: list[threading.Thread] = []

    def hang() -> None:
        threads.append(threading.current_thread())
        release.wait()

    async def start() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await BlockingCalls("test").run(hang)

    asyncio.run(start())
    release.set()
    threads[0].join()
    assert threads[0].daemon


async def test_close_runs_beside_a_call_that_hangs() -> None:
    """A call that closes a connection does not wait for a hanging one on it, and its failure does not matter."""
    calls, release = BlockingCalls("test"), Event()

    def close() -> None:
        release.set()
        raise KeyError

    task = asyncio.create_task(calls.run(release.wait))
    await asyncio.sleep(0)
    await calls.close(close)
    assert await task


async def test_close_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A close that hangs is given up without blocking the loop, and the exporter ends."""
    monkeypatch.setattr("quotascope.exporter.threads._LONGEST_CLOSE_SECONDS", 0.001)
    release = Event()
    await BlockingCalls("test").close(release.wait)
    release.set()


async def test_a_call_that_never_began_leaves_its_owner_free() -> None:
    """A call that was canceled before a thread was free leaves its owner free."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        release = Event()
        blocking = asyncio.create_task(answer_thread().run(release.wait, pool))
        await asyncio.sleep(0)
        calls = answer_thread()
        waiting = asyncio.create_task(calls.run(lambda: 1, pool))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        calls.check()
        release.set()
        await blocking
    with pytest.raises(RuntimeError):  # the pool is shut down, as at the end
        await calls.run(lambda: 1, pool)
    calls.check()
