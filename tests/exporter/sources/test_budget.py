"""The bounds of the answers of all sources together, and the answers that give way."""

from __future__ import annotations

import asyncio
import gc

import pytest

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources import budget
from quotascope.exporter.sources.budget import SMALL_COST, Body, Budget, Decoding
from quotascope.exporter.sources.source import Numbers


async def test_one_body_at_a_time_is_longer_than_there_is_room() -> None:
    """One body at a time may exceed the budget, and the others wait for it, the shortest first."""
    room = Budget(100)
    bodies = [Body(doubtful=False) for _ in range(4)]
    for body in bodies:
        await room.grow(body, 25)
    await room.grow(bodies[0], 90)
    waiting = [
        asyncio.create_task(room.grow(body, length)) for body, length in zip(bodies[1:], (40, 30, 60), strict=True)
    ]
    await asyncio.sleep(0)
    assert not any(body.done() for body in waiting)
    bodies[0].complete = True
    room.close(bodies[0])
    await asyncio.wait(waiting, timeout=0.2)
    assert sum(body.length for body in bodies) <= 100 + 60
    for body in bodies[1:]:
        room.close(body)
    await asyncio.gather(*waiting, return_exceptions=True)
    for body in bodies:
        room.close(body)
    assert room._used == 0


async def test_a_body_that_keeps_others_waiting_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read whose body keeps others waiting too long ends with a reason, and the others go on."""
    monkeypatch.setattr(budget, "_LEASE_SECONDS", 0.02)
    room = Budget(100)
    slow, good = Body(doubtful=False), Body(doubtful=False)
    ended: list[bool] = []
    slow.give_way = lambda: ended.append(True)
    await room.grow(slow, 150)
    await room.grow(good, 10)
    assert ended == [True]
    assert slow.gave_way
    with pytest.raises(SourceUnreadable, match=r"longer than .* together"):
        await room.grow(slow, 160)


async def test_who_was_no_use_has_half_of_the_room() -> None:
    """Doubtful sources share half of the budget, and leave the other half to good ones."""
    room = Budget(100)
    bad, worse, good = Body(doubtful=True), Body(doubtful=True), Body(doubtful=False)
    await room.grow(bad, 50)
    await room.grow(worse, 20)  # has the turn
    await asyncio.wait_for(room.grow(good, 30), 60)
    assert good.length == 30
    for body in (bad, worse, good):
        room.close(body)


async def test_large_answers_are_decoded_one_at_a_time() -> None:
    """Large answers are decoded one at a time, the smallest first, and small ones beside them if they have room."""
    turns, order = Decoding(most_small=SMALL_COST), list[str]()
    go = asyncio.Event()

    async def decode(name: str, cost: int) -> None:
        async with turns.turn(cost):
            order.append(name)
            await go.wait()

    tasks = [
        asyncio.create_task(decode(name, cost))
        for name, cost in (
            ("large", SMALL_COST + 1),
            ("larger", SMALL_COST + 3),
            ("less", SMALL_COST + 2),
            ("small", SMALL_COST),
            ("another", 1),
        )
    ]
    await asyncio.sleep(0.01)
    assert order == ["large", "small"]
    go.set()
    await asyncio.gather(*tasks)
    assert order.index("less") < order.index("larger")
    assert (turns._small_cost, turns._large_is_decoded) == (0, False)


def test_the_source_with_the_most_numbers_loses_them() -> None:
    """
    The source with the most numbers loses its room, so that one with few is always read.

    A source that is gone gives its room back.
    """

    class Owner:
        pass

    numbers = Numbers(100)
    bad = [Owner() for _ in range(5)]
    good = Owner()
    numbers.ask(bad[0], 60)
    numbers.ask(bad[1], 40)
    with pytest.raises(SourceUnreadable, match="80 quota values, and all sources have more than the 100"):
        numbers.ask(bad[2], 80)
    numbers.ask(good, 30)  # in place of the largest
    with pytest.raises(SourceUnreadable):
        numbers.ask(bad[0], 60)
    numbers.ask(good, 30)
    del bad[1]
    gc.collect()
    numbers.ask(bad[0], 60)


def test_of_sources_with_as_many_numbers_the_first_keeps_its_room() -> None:
    """
    Of sources with equally many numbers the first keeps its room, or each in turn would displace the one before.

    A closed source gives its room back.
    """

    class Owner:
        pass

    numbers = Numbers(100)
    first_owner, second = Owner(), Owner()
    for _ in range(2):
        numbers.ask(first_owner, 60)
        with pytest.raises(SourceUnreadable):
            numbers.ask(second, 60)
    numbers.release(first_owner)
    numbers.ask(second, 60)


async def test_doubtful_answers_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubtful answers are read one by one, each for some seconds at most, and good ones at once."""
    room, order = Budget(100), list[str]()
    go = asyncio.Event()

    async def read(name: str, *, doubtful: bool) -> None:
        async with room.turn(Body(doubtful=doubtful)):
            order.append(name)
            await go.wait()

    tasks = [asyncio.create_task(read(name, doubtful=name != "good")) for name in ("bad", "worse", "good")]
    await asyncio.sleep(0.01)
    assert order == ["bad", "good"]
    monkeypatch.setattr(budget, "_DOUBTFUL_SECONDS", 0.0)
    tasks.append(asyncio.create_task(read("worst", doubtful=True)))
    await asyncio.sleep(0.01)
    assert order == ["bad", "good", "worst"]
    go.set()
    await asyncio.gather(*tasks)
    assert order[-1] == "worse"
    assert room._doubtful is None
