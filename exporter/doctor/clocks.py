"""Whether the clocks of the nodes and of this machine agree, as far as HTTP tells."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp

from quotascope.clients.errors import ClientError

from ..config import SourceConfig
from ..tls import tls_of
from ..units import seconds
from .result import Result, Verdict

_TOLERANCE_SECONDS: Final = 2.0
"""``Date`` has whole seconds, and an answer takes a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one agent's clock said."""

    source: str
    date: str | None
    """The header ``Date``, whatever else the answer said; None without an answer or a header."""
    asked_at: float = 0.0
    """Unix time in seconds here, before the answer."""
    answered_at: float = 0.0
    problem: str = ""
    """Why the agent could not be asked; empty when it was."""


async def clocks(
    configs: Iterable[SourceConfig], clock: Callable[[], float] = time.time
) -> list[Result]:
    """Ask every agent for its time; it runs in the node's process. Agents that do not tell are left out."""
    readings = await asyncio.gather(*(_read(config, clock) for config in configs))
    return [result for each in readings for result in compared(each)]


async def _read(config: SourceConfig, clock: Callable[[], float]) -> Reading:
    try:
        tls = tls_of(config.tls).context() if config.tls else None
    except (ClientError, OSError, ValueError) as error:
        return Reading(source=config.label, date=None, problem=str(error))
    timeout = aiohttp.ClientTimeout(total=config.timeout_seconds)
    asked_at = clock()
    try:
        # no credentials: an answer that refuses has the time as well
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.head(
                config.url, ssl=True if tls is None else tls, allow_redirects=False
            ) as answer,
        ):
            date = answer.headers.get("Date")
    except (aiohttp.ClientError, OSError, ValueError):
        date = None  # why is told by the check of the agents
    return Reading(
        source=config.label, date=date, asked_at=asked_at, answered_at=clock()
    )


def compared(reading: Reading) -> Iterator[Result]:
    """Whether this clock and ours agree."""
    if reading.problem:
        text = f"Its clock could not be read: {reading.problem}."
        yield _result(reading.source, Verdict.LOOK, text, "Check tls of this source.")
    try:
        at = parsedate_to_datetime(reading.date or "").timestamp()
    except (ValueError, OverflowError):  # the latter of a year of twenty digits
        return
    early = reading.asked_at - 1 - at
    late = at - reading.answered_at
    off = max(early, late)
    if off <= _TOLERANCE_SECONDS:
        text = "Agrees with this machine."
        yield _result(reading.source, Verdict.FINE, text)
        return
    which = "behind" if early > late else "ahead of"
    yield _result(
        reading.source,
        Verdict.LOOK,
        f"Is {seconds(off)} {which} this machine.",
        "Synchronise the clocks (NTP): else logs, graphs and throttles of the two cannot be put side by side.",
    )


def _result(source: str, verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(
        check="clocks", subject=source, verdict=verdict, text=text, advice=advice
    )
