"""
The note on a failed attempt: one line in the text of its exception, for Spark drops the accumulators of such attempts.

A note holds all throttle times of the attempt until then, apart those that the executor's plugin has already. Texts of exceptions are untrusted, so a note counts only where a line is
nothing else, and when it names the attempt that failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from quotascope.clients.accounting import OVERFLOW, Client, ClientTotals

from .attempt import AttemptKey
from .rows import UnreadableRow, is_count, row, totals_of

__all__ = ["PREFIX", "AttemptKey", "Note", "put", "read", "text_of"]

PREFIX = "quotascope throttles: "
_MOST_CHARACTERS = 8_000
_MOST_CANDIDATES = 50
_BEFORE = re.compile(r"[ |+]{0,40}")  # the margin of an exception group
_AFTER = re.compile(r"[)\s]*(SQLSTATE: \w{1,10})?\s*")
_MOST_QUERY = 100
_DECODER = json.JSONDecoder()


class Note(NamedTuple):
    """The throttle times of a failed attempt."""

    query: str
    """The id of its streaming query; empty when there is none."""
    totals: tuple[ClientTotals, ...]
    """Of the attempt until it failed, without those reported."""
    reported: tuple[ClientTotals, ...] = ()
    """Those that the attempt reported to the executor's plugin while it ran."""

    @property
    def whole(self) -> tuple[ClientTotals, ...]:
        """Of the whole attempt; a client may be there twice."""
        return self.totals + self.reported


def text_of(attempt: AttemptKey, note: Note) -> str:
    """One line of ASCII and of bounded length: if there are too many clients, those throttled shortest are counted together."""
    most = max(len(note.totals), len(note.reported))
    while True:
        values = {
            **attempt._asdict(),
            "query": note.query[:_MOST_QUERY],
            "clients": [row(each) for each in _summed(note.totals, most)],
        }
        if note.reported:
            values["reported"] = [row(each) for each in _summed(note.reported, most)]
        text = PREFIX + json.dumps(values, separators=(",", ":"))
        if len(text) <= _MOST_CHARACTERS:
            return text
        most //= 2


def read(text: str, attempt: AttemptKey) -> Note | None:
    """The fullest note of this attempt in the text of its failure; None when there is none. Never raises."""
    notes = [note for line in _lines(text) for note in _parsed(line, attempt)]
    return max(notes, key=_fullness, default=None)


def _summed(totals: Sequence[ClientTotals], most: int) -> list[ClientTotals]:
    """The clients throttled longest, and the others as one for each side."""
    longest = sorted(totals, key=lambda each: each.throttled_ms, reverse=True)
    kept = {each.client: each for each in longest[:most]}
    for each in longest[most:]:
        client = Client(OVERFLOW, OVERFLOW, each.client.side)
        kept[client] = kept.get(client, ClientTotals(client)).plus(each)
    return list(kept.values())


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


def _parsed(line: str, attempt: AttemptKey) -> Iterator[Note]:
    try:
        values, end = _DECODER.raw_decode(line)
        if _AFTER.fullmatch(line, end) and isinstance(values, dict):
            ids = tuple(values.get(name) for name in AttemptKey._fields)
            if all(map(is_count, ids)) and ids == attempt:
                query, rows = values["query"], values["clients"]
                reported = values.get("reported", [])
                if isinstance(query, str) and isinstance(rows, list) and isinstance(reported, list):
                    yield Note(query[:_MOST_QUERY], tuple(map(totals_of, rows)), tuple(map(totals_of, reported)))
    except (KeyError, RecursionError, UnreadableRow, ValueError):
        return


def _fullness(note: Note) -> tuple[int, int]:
    responses = sum(each.responses for each in note.whole)
    return responses, sum(each.quota_retries for each in note.whole)


class _Line(str):
    """Shown on a line of its own, whether it is the only argument of an exception or one of several."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"\n{super().__str__()}\n"

    __repr__ = __str__


class _Noted(Exception):
    """Stands at the end of the chain of an exception that shows neither notes nor arguments."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def put(error: BaseException, write: Callable[[], str]) -> None:
    """
    Add the note to the traceback of this exception, in place of an older one.

    Where Python has no notes on exceptions (before 3.11), it is one more of its arguments. Never raises.
    """
    try:
        text = write()
        if hasattr(error, "add_note"):
            notes = getattr(error, "__notes__", None)
            if isinstance(notes, list):
                notes[:] = [each for each in notes if not _is_ours(each)]
            error.add_note(text)
        else:
            _add_argument(error, text)
    except Exception:  # noqa: BLE001, S110 - the program's exception matters more than the note on it
        pass


def _add_argument(error: BaseException, text: str) -> None:
    kept = tuple(each for each in error.args if not isinstance(each, _Line))
    error.args = (*kept, _Line(text))
    try:
        shows = text in str(error)
    except Exception:  # noqa: BLE001 - of the program's own class
        shows = False
    if not shows:
        error.args = kept
        _extend_chain(error, _Noted(text))


def _extend_chain(error: BaseException, note: _Noted) -> None:
    """Put the note before the first exception of the chain, in place of an older note."""
    seen = {id(error)}
    following = _before(error)
    while following is not None and not isinstance(following, _Noted):
        if id(following) in seen:
            return
        seen.add(id(following))
        error, following = following, _before(following)
    if error.__suppress_context__:
        error.__cause__ = note
    else:
        error.__context__ = note


def _before(error: BaseException) -> BaseException | None:
    """The exception that Python prints before this one."""
    if error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _is_ours(note: object) -> bool:
    return isinstance(note, str) and note.startswith(PREFIX)
