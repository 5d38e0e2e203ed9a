import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from quotascope.exporter.errors import SourceUnreachable, SourceUnreadable
from quotascope.exporter.sources import in_thread
from quotascope.exporter.sources.in_thread import InThread


def refuse() -> None:
    """Fail as a reader does."""
    raise SourceUnreadable("no")


async def test_result_and_error_are_those_of_the_reader() -> None:
    """And afterwards it can be used again."""
    thread = InThread()
    assert await thread.run(lambda: 1) == 1
    with pytest.raises(SourceUnreadable, match=r"^no$"):
        await thread.run(refuse)
    assert await thread.run(lambda: 2) == 2


async def test_a_source_is_not_asked_while_its_last_answer_is_read() -> None:
    """Answers that take longer than the pause between scrapes do not pile up; others go on."""
    thread, begun, go_on = InThread(), Event(), Event()

    def read() -> None:
        begun.set()
        go_on.wait()

    slow = asyncio.create_task(thread.run(read))
    await asyncio.to_thread(begun.wait)
    slow.cancel()  # its scrape was over
    with pytest.raises(asyncio.CancelledError):
        await slow
    with pytest.raises(SourceUnreachable, match=r"still being read.*max_answer_bytes"):
        thread.check()
    with pytest.raises(SourceUnreachable):
        await thread.run(lambda: 1)
    assert await InThread().run(lambda: 2) == 2
    go_on.set()
    while True:
        try:
            thread.check()
        except SourceUnreachable:
            await asyncio.sleep(0)
        else:
            break
    assert await thread.run(lambda: 3) == 3


async def test_a_read_that_never_began_leaves_the_source_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All threads were taken when its scrape was over."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        monkeypatch.setattr(in_thread, "_POOL", pool)
        go_on = Event()
        other = asyncio.create_task(InThread().run(go_on.wait))
        await asyncio.sleep(0)
        thread = InThread()
        waiting = asyncio.create_task(thread.run(lambda: 1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        thread.check()
        go_on.set()
        await other


async def test_a_pool_that_is_shut_down_leaves_the_source_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at the end of the program."""
    pool = ThreadPoolExecutor(max_workers=1)
    pool.shutdown()
    monkeypatch.setattr(in_thread, "_POOL", pool)
    thread = InThread()
    with pytest.raises(RuntimeError):
        await thread.run(lambda: 1)
    thread.check()
