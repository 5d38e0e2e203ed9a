"""Runs checks side by side, each with a limit of its own, so that none of them holds up or breaks another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from quotascope.clients.errors import ClientError

from ..errors import ExporterError
from ..untrusted import shown
from .result import Result, Verdict

log = structlog.get_logger()

Told = Callable[[Sequence[str]], None]
"""Is told which checks have not ended yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something to look at."""

    name: str
    look: Callable[[], Awaitable[Iterable[Result]]]
    """Raises ``ExporterError`` or ``ClientError`` when nothing can be said."""
    advice: str = ""
    """What to do when nothing can be said."""


async def examine(
    checks: Sequence[Check], seconds: float, told: Told = lambda _: None
) -> list[Result]:
    """The results of all checks, in their order; one that takes longer than ``seconds`` is given up."""
    left = [check.name for check in checks]

    def ended(name: str, _: object) -> None:
        left.remove(name)
        told(left)

    told(left)
    tasks = []
    for check in checks:
        task = asyncio.create_task(_results(check, seconds))
        task.add_done_callback(partial(ended, check.name))
        tasks.append(task)
    return [result for results in await asyncio.gather(*tasks) for result in results]


async def _results(check: Check, seconds: float) -> list[Result]:
    try:
        async with asyncio.timeout(seconds):
            return list(await check.look())
    except TimeoutError:
        text = f"No answer within {seconds:g} s."
        return [_broken(check, text, check.advice or "Raise --timeout.")]
    except (ExporterError, ClientError) as error:
        return [_broken(check, shown(error), check.advice)]
    except Exception as error:
        log.debug("a check failed unexpectedly", check=check.name, exc_info=True)
        text = f"The check itself failed: {type(error).__name__}: {shown(error)}"
        return [_broken(check, text, "This is a defect of quotascope.")]


def _broken(check: Check, text: str, advice: str) -> Result:
    return Result(check=check.name, verdict=Verdict.BROKEN, text=text, advice=advice)
