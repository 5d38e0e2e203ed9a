from __future__ import annotations

import asyncio
from functools import partial

from structlog.testing import capture_logs

from quotascope.exporter.background import AGAIN_SECONDS, Background


async def forever(ended: list[str], name: str) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(name)


async def test_one_can_be_ended_without_the_others() -> None:
    """One task can be ended, which frees its name; closing ends all tasks."""
    background, ended = Background(), list[str]()
    background.start("a", partial(forever, ended, "a"))
    background.start("b", partial(forever, ended, "b"))
    await asyncio.sleep(0)
    await background.stop("a")
    await background.stop("a")
    assert ended == ["a"]
    background.start("a", partial(forever, ended, "a again"))
    await asyncio.sleep(0)
    await background.close()
    assert sorted(ended) == ["a", "a again", "b"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_work_that_fails_is_logged_and_begins_again_where_it_lasts() -> None:
    """A loop that dies in silence would let limits or samples stand still for ever."""
    begun = {"once": 0, "lasting": 0}
    pauses: list[float] = []
    third = asyncio.Event()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            third.set()
            await asyncio.Event().wait()

    async def broken(name: str) -> None:
        begun[name] += 1
        raise ZeroDivisionError

    background = Background(pause)
    with capture_logs() as lines:
        for name in begun:
            background.start(name, partial(broken, name), lasting=name == "lasting")
        await third.wait()
        await background.stop("once")
        await background.close()
    assert begun == {"once": 1, "lasting": 3}
    assert background.restarts == {"lasting": 3}
    assert pauses == [AGAIN_SECONDS] * 3
    reported = [(line["work"], line["log_level"], line["exc_info"]) for line in lines]
    assert reported.count(("lasting", "error", True)) == 3
    assert reported.count(("once", "error", True)) == 1


async def test_the_end_ends_all_whatever_some_do() -> None:
    """The end ends all tasks, even if some of them fail while they end."""

    async def broken_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError

    background, ended = Background(), list[str]()
    background.start("a", broken_at_the_end)
    background.start("b", partial(forever, ended, "b"))
    await asyncio.sleep(0)
    with capture_logs() as lines:
        await background.close()
    assert (ended, [line["work"] for line in lines]) == (["b"], ["a"])
    assert asyncio.all_tasks() == {asyncio.current_task()}
