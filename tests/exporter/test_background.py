from __future__ import annotations

import asyncio

import pytest

from quotascope.exporter.background import Background


async def forever(ended: list[str], name: str) -> None:
    """Work until cancelled."""
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(name)


async def test_one_can_be_ended_without_the_others() -> None:
    """Its name is free again then; the end ends all."""
    background, ended = Background(), list[str]()
    background.start("a", forever(ended, "a"))
    background.start("b", forever(ended, "b"))
    await asyncio.sleep(0)
    await background.stop("a")
    await background.stop("a")
    assert ended == ["a"]
    background.start("a", forever(ended, "a again"))
    await asyncio.sleep(0)
    await background.close()
    assert sorted(ended) == ["a", "a again", "b"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_went_wrong_is_not_hidden() -> None:
    """A defect of the work is raised where somebody waits for its end."""

    async def broken() -> None:
        raise ZeroDivisionError

    background = Background()
    background.start("a", broken())
    await asyncio.sleep(0)
    with pytest.raises(ZeroDivisionError):
        await background.stop("a")
