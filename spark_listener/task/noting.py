"""Puts a note on an exception, so that whoever prints the exception prints the note."""

from __future__ import annotations

from collections.abc import Callable

from .note import PREFIX


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


def put_note(error: BaseException, write: Callable[[], str]) -> None:
    """
    Let the traceback of this exception have the note, in place of an older one.

    Where Python has no notes on exceptions (before 3.11), it is one more of its arguments. Never raises.
    """
    try:
        text = write()
        if hasattr(error, "add_note"):
            _drop_notes(error)
            error.add_note(text)
        else:
            _add_argument(error, text)
    except Exception:  # noqa: BLE001, S110 - the program's exception matters more than the note on it
        pass


def _drop_notes(error: BaseException) -> None:
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        notes[:] = [each for each in notes if not _is_ours(each)]


def _add_argument(error: BaseException, text: str) -> None:
    kept = tuple(each for each in error.args if not isinstance(each, _Line))
    error.args = (*kept, _Line(text))
    if not _shows(error, text):
        error.args = kept
        _extend_chain(error, _Noted(text))


def _shows(error: BaseException, text: str) -> bool:
    try:
        return text in str(error)
    except Exception:  # noqa: BLE001 - somebody's own
        return False


def _extend_chain(error: BaseException, note: _Noted) -> None:
    """Say that the note came before all else, in place of an older note."""
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
