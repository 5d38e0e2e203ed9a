from __future__ import annotations

import asyncio
from collections.abc import Iterable

from structlog.testing import capture_logs

from quotascope.exporter.doctor import Check, Result, Verdict, examine, worst
from quotascope.exporter.errors import SourceDenied


def result(check: str, verdict: Verdict = Verdict.FINE) -> Result:
    """Something was found."""
    return Result(check=check, verdict=verdict, text="so it is")


def check(name: str, *raised: Exception) -> Check:
    """A check that finds one thing, or raises."""

    async def look() -> Iterable[Result]:
        for error in raised:
            raise error
        return [result(name)]

    return Check(name=name, look=look, advice="do this")


def test_the_worst_counts() -> None:
    """One broken thing breaks the whole; nothing at all is fine."""
    found = [result("a", each) for each in (Verdict.NOTE, Verdict.BROKEN, Verdict.LOOK)]
    assert worst(found) is Verdict.BROKEN
    assert worst(found[:1]) is Verdict.NOTE
    assert worst([]) is Verdict.FINE


async def test_checks_do_not_wait_for_each_other() -> None:
    """They run side by side; the results keep their order, and who waits is told what is left."""
    released = asyncio.Event()
    left: list[list[str]] = []

    async def first() -> Iterable[Result]:
        await released.wait()
        return [result("first")]

    async def second() -> Iterable[Result]:
        released.set()
        return [result("second")]

    checks = [Check(name="first", look=first), Check(name="second", look=second)]
    results = await examine(checks, 60, lambda names: left.append(list(names)))
    assert [each.check for each in results] == ["first", "second"]
    assert left[0] == ["first", "second"]
    assert left[-1] == []


async def test_one_that_hangs_is_given_up() -> None:
    """The others are told all the same."""

    async def hang() -> Iterable[Result]:
        await asyncio.Event().wait()
        return ()

    hanging = Check(name="slow", look=hang)
    slow, fine = await examine([hanging, check("fast")], 0.01)
    assert (slow.check, slow.verdict) == ("slow", Verdict.BROKEN)
    assert slow.text == "No answer within 0.01 s."
    assert slow.advice == "Raise --timeout."
    assert fine.verdict is Verdict.FINE


async def test_what_cannot_be_said_is_told_with_advice() -> None:
    """An error of ours is an answer; anything else is a defect, and no traceback either."""
    with capture_logs():
        denied, defect, fine = await examine(
            [
                check("a", SourceDenied("no\nway")),
                check("b", KeyError("x")),
                check("c"),
            ],
            60,
        )
    assert (denied.text, denied.advice) == ("no way", "do this")
    assert defect.text == "The check itself failed: KeyError: 'x'"
    assert "defect" in defect.advice
    assert fine.verdict is Verdict.FINE
