"""
The note on a failed attempt: one line in the text of its exception, for Spark drops the accumulators of such attempts.

A note holds everything that the attempt was told until then. Texts of exceptions are written by strangers, so a note counts only
where a line is nothing else, and when it names the attempt that failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quotascope.clients.accounting import OVERFLOW, Client, ClientTotals

from .attempt import Attempt
from .rows import StrangeRow, is_count, row, totals_of

__all__ = ["PREFIX", "Attempt", "Note", "read", "text_of"]

PREFIX = "quotascope throttles: "
_MOST_CHARACTERS = 8_000
_MOST_CANDIDATES = 50
_BEFORE = re.compile(r"[ |+]{0,40}")  # the margin of an exception group
_AFTER = re.compile(r"[)\s]*(SQLSTATE: \w{1,10})?\s*")
_MOST_QUERY = 100
_DECODER = json.JSONDecoder()


class Note(NamedTuple):
    """What a failed attempt was told."""

    query: str
    """The id of its streaming query; empty when there is none."""
    totals: tuple[ClientTotals, ...]
    """Of the whole attempt, until it failed."""


def text_of(attempt: Attempt, note: Note) -> str:
    """One line of ASCII and of bounded length: when there are too many clients, those that waited least are counted together."""
    most = len(note.totals)
    while True:
        text = PREFIX + _json(attempt, note.query, _summed(note.totals, most))
        if len(text) <= _MOST_CHARACTERS:
            return text
        most //= 2


def read(text: str, attempt: Attempt) -> Note | None:
    """The fullest note of this attempt in the text of its failure; None when there is none. Never raises."""
    notes = [note for line in _lines(text) for note in _parsed(line, attempt)]
    return max(notes, key=_fullness, default=None)


def _json(attempt: Attempt, query: str, totals: Sequence[ClientTotals]) -> str:
    rows = [row(each) for each in totals]
    values = {**attempt._asdict(), "query": query[:_MOST_QUERY], "clients": rows}
    return json.dumps(values, separators=(",", ":"))


def _summed(totals: Sequence[ClientTotals], most: int) -> list[ClientTotals]:
    """The clients that waited longest, and the others as one for each side."""
    by_wait = sorted(totals, key=lambda each: each.throttled_ms, reverse=True)
    kept = {each.client: each for each in by_wait[:most]}
    for each in by_wait[most:]:
        client = Client(OVERFLOW, OVERFLOW, each.client.side)
        kept[client] = _plus(kept.get(client, ClientTotals(client)), each)
    return list(kept.values())


def _plus(one: ClientTotals, other: ClientTotals) -> ClientTotals:
    return one._replace(
        throttled_ms=one.throttled_ms + other.throttled_ms,
        responses=one.responses + other.responses,
        longest_ms=max(one.longest_ms, other.longest_ms),
        quota_retries=one.quota_retries + other.quota_retries,
    )


def _lines(text: str) -> Iterator[str]:
    """What follows the prefix in lines that begin with it, the last first."""
    end = len(text)
    for _ in range(_MOST_CANDIDATES):
        at = text.rfind(PREFIX, 0, end)
        if at < 0:
            return
        line = text.rfind("\n", max(0, at - 41), at) + 1
        if (line or at <= 40) and _BEFORE.fullmatch(text, line, at):  # noqa: PLR2004 - as the expression
            begin = at + len(PREFIX)
            stop = text.find("\n", begin, begin + _MOST_CHARACTERS + 1)
            yield text[begin : stop if stop >= 0 else begin + _MOST_CHARACTERS]
        end = at


def _parsed(line: str, attempt: Attempt) -> Iterator[Note]:
    try:
        values, end = _DECODER.raw_decode(line)
        if _AFTER.fullmatch(line, end) and isinstance(values, dict):
            ids = tuple(values.get(name) for name in Attempt._fields)
            if all(map(is_count, ids)) and ids == attempt:
                query, rows = values["query"], values["clients"]
                if isinstance(query, str) and isinstance(rows, list):
                    yield Note(query[:_MOST_QUERY], tuple(map(totals_of, rows)))
    except (KeyError, RecursionError, StrangeRow, ValueError):
        return


def _fullness(note: Note) -> tuple[int, int]:
    responses = sum(each.responses for each in note.totals)
    return responses, sum(each.quota_retries for each in note.totals)
