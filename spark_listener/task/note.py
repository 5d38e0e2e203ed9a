"""
The note on a failed attempt: a line in the text of its exception, since Spark drops the accumulators of such attempts.

A note has all throttle times of the attempt until it failed, and lists those apart that the executor's plugin already
has. Texts of exceptions are untrusted, so a note only counts if it is a line of its own and names the failed attempt.
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
_LONGEST_MARGIN = 40
"""Characters before a note in its line: the margin that Python prints beside an exception group."""
_BEFORE = re.compile(rf"[ |+]{{0,{_LONGEST_MARGIN}}}")
_AFTER = re.compile(r"[)\s]*(SQLSTATE: \w{1,10})?\s*")
_MOST_QUERY = 100
_DECODER = json.JSONDecoder()


class Note(NamedTuple):
    """The throttle times of a failed attempt."""

    query: str
    """The id of its streaming query; empty when there is none."""
    totals: tuple[ClientTotals, ...]
    """Counts of the attempt until it failed, without those in `reported`."""
    reported: tuple[ClientTotals, ...] = ()
    """Counts that the attempt reported to the executor's plugin while it ran."""

    @property
    def whole(self) -> tuple[ClientTotals, ...]:
        """Counts of the whole attempt; a client may be there twice."""
        return self.totals + self.reported


def text_of(attempt: AttemptKey, note: Note) -> str:
    """
    Return a note as one line of ASCII with at most `_MOST_CHARACTERS`.

    If there are too many clients, the ones with the shortest throttle times are added up.
    """
    max_clients = max(len(note.totals), len(note.reported))
    while True:
        values = {
            **attempt._asdict(),
            "query": note.query[:_MOST_QUERY],
            "clients": [row(client_totals) for client_totals in _summed(note.totals, max_clients)],
        }
        if note.reported:
            values["reported"] = [row(client_totals) for client_totals in _summed(note.reported, max_clients)]
        text = PREFIX + json.dumps(values, separators=(",", ":"))
        if len(text) <= _MOST_CHARACTERS:
            return text
        max_clients //= 2


def read(text: str, attempt: AttemptKey) -> Note | None:
    """Return the note with most responses of an attempt, in the text of its failure; None without one. Never raises."""
    notes = [note for line in _lines(text) for note in _parsed(line, attempt)]
    return max(notes, key=_fullness, default=None)


def _summed(totals: Sequence[ClientTotals], max_clients: int) -> list[ClientTotals]:
    """Return the `max_clients` that were throttled longest, and the sum of all others for each side."""
    longest = sorted(totals, key=lambda client_totals: client_totals.throttled_ms, reverse=True)
    by_client = {client_totals.client: client_totals for client_totals in longest[:max_clients]}
    for client_totals in longest[max_clients:]:
        client = Client(OVERFLOW, OVERFLOW, client_totals.client.side)
        by_client[client] = by_client.get(client, ClientTotals(client)).plus(client_totals)
    return list(by_client.values())


def _lines(text: str) -> Iterator[str]:
    """Yield the text after the prefix, of all lines that begin with the prefix, the last line first."""
    end = len(text)
    for _ in range(_MOST_CANDIDATES):
        start = text.rfind(PREFIX, 0, end)
        if start < 0:
            return
        # the begin of the line; 0 also if no line feed is near enough
        line = text.rfind("\n", max(0, start - _LONGEST_MARGIN - 1), start) + 1
        if (line or start <= _LONGEST_MARGIN) and _BEFORE.fullmatch(text, line, start):
            begin = start + len(PREFIX)
            stop = text.find("\n", begin, begin + _MOST_CHARACTERS + 1)
            yield text[begin : stop if stop >= 0 else begin + _MOST_CHARACTERS]
        end = start


def _parsed(line: str, attempt: AttemptKey) -> Iterator[Note]:
    """Yield the note in a line, if it is one of this attempt."""
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
    """Return the key by which the note with most responses is the largest."""
    responses = sum(client_totals.responses for client_totals in note.whole)
    return responses, sum(client_totals.quota_retries for client_totals in note.whole)


class _Line(str):
    """Argument that is shown on a line of its own, be it the only argument of an exception or one of several."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"\n{super().__str__()}\n"

    __repr__ = __str__


class _Noted(Exception):
    """End of the chain of an exception that shows neither notes nor arguments."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def put(error: BaseException, write: Callable[[], str]) -> None:
    """
    Add a note to the traceback of an exception, and remove an older note. Never raises.

    Before Python 3.11, which has no notes on exceptions, the note becomes an additional argument of the exception.
    """
    try:
        text = write()
        if hasattr(error, "add_note"):
            notes = getattr(error, "__notes__", None)
            if isinstance(notes, list):
                notes[:] = [note for note in notes if not _is_ours(note)]
            error.add_note(text)
        else:
            _add_argument(error, text)
    except Exception:  # noqa: BLE001, S110 - the program's exception matters more than the note on it
        pass


def _add_argument(error: BaseException, text: str) -> None:
    """Add a text to the arguments of an exception; if it does not show them, put it in front of its chain."""
    arguments = tuple(argument for argument in error.args if not isinstance(argument, _Line))
    error.args = (*arguments, _Line(text))
    try:
        shows = text in str(error)
    except Exception:  # noqa: BLE001 - of the program's own class
        shows = False
    if not shows:
        error.args = arguments
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
    """Return the exception that Python prints before this one."""
    if error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _is_ours(note: object) -> bool:
    """Return whether a note on an exception is one of throttle times."""
    return isinstance(note, str) and note.startswith(PREFIX)
