import traceback
from collections.abc import Callable

import pytest

from quotascope.spark_listener.task.note import AttemptKey, Note, put, read, text_of

ATTEMPT = AttemptKey(0, 0, 5)
NOTE = Note("", ())
TEXT = text_of(ATTEMPT, NOTE)


class Old:
    """Hides the notes of newer Pythons, as before 3.11."""

    @property
    def add_note(self) -> object:
        """There is none."""
        raise AttributeError


class OldValue(Old, ValueError):  # type: ignore[misc]  # on purpose
    """Shows its arguments."""


class OldKey(Old, KeyError):  # type: ignore[misc]  # on purpose
    """Shows them in its own way."""


class OldFile(Old, FileNotFoundError):  # type: ignore[misc]  # on purpose
    """Shows others."""


class OldMute(Old, Exception):  # type: ignore[misc]  # on purpose
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


def printed(error: BaseException) -> str:
    """As a worker prints it."""
    return "".join(traceback.format_exception(error))


def fail(error: Exception) -> None:
    """Raise it."""
    raise error


def raised(error: Exception, before: Exception | None = None) -> Exception:
    """An exception with a traceback, and perhaps with another one that was handled when it came."""
    try:
        try:
            fail(before or error)
        except Exception:  # noqa: BLE001 - it is somebody's
            fail(error)
    except Exception as caught:  # noqa: BLE001
        return caught
    raise AssertionError


ERRORS: dict[str, Callable[[], Exception]] = {
    "plain": lambda: raised(ValueError("no")),
    "several lines": lambda: raised(ValueError("no\nat\nall")),
    "chained": lambda: raised(ValueError("no"), KeyError("before")),
    "old": lambda: raised(OldValue("no")),
    "old and empty": lambda: raised(OldValue()),
    "old with two arguments": lambda: raised(OldValue("no", {"of": "two"})),
    "old key": lambda: raised(OldKey("no")),
    "old file": lambda: raised(OldFile(2, "No such file", "x")),
    "old and chained": lambda: raised(
        OldFile(2, "No such", "x"), OldFile(13, "Denied")
    ),
    "old and mute": lambda: raised(OldMute("no")),
}
EVERY = pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)


@EVERY
def test_the_traceback_has_the_note(make: Callable[[], Exception]) -> None:
    """On every Python, whatever the exception shows of itself."""
    error = make()
    put(error, lambda: TEXT)
    assert read(printed(error), ATTEMPT) == NOTE


@EVERY
def test_a_newer_note_replaces_the_older(make: Callable[[], Exception]) -> None:
    """Scopes that are nested each write one."""
    error = make()
    for _ in range(3):
        put(error, lambda: TEXT)
    assert printed(error).count(TEXT) == 1


@EVERY
def test_the_exception_stays_what_it_is(make: Callable[[], Exception]) -> None:
    """Programs look at its type and its first arguments."""
    error = make()
    before = error.args
    put(error, lambda: TEXT)
    assert error.args[: len(before)] == before


def test_other_notes_stay() -> None:
    """They are the program's."""
    error = ValueError("no")
    error.add_note("look here")
    put(error, lambda: TEXT)
    put(error, lambda: TEXT)
    assert error.__notes__ == ["look here", TEXT]


def test_an_exception_that_hides_what_was_before_has_the_note() -> None:
    """With `from None`, and with a cause."""
    for cause in (None, OldFile(13, "Denied")):
        error = OldFile(2, "No such file")
        error.__context__ = KeyError("hidden")
        error.__cause__ = cause
        put(error, lambda: TEXT)
        text = printed(error)
        assert read(text, ATTEMPT) == NOTE
        assert "hidden" not in text


def test_a_chain_that_has_no_end_is_left_alone() -> None:
    """Such as a program can make."""
    first, second = OldMute("one"), OldMute("two")
    first.__context__, second.__context__ = second, first
    put(first, lambda: TEXT)
    assert (first.__context__, second.__context__) == (second, first)


def test_nothing_takes_the_place_of_the_programs_exception() -> None:
    """A note that cannot be written, or put there, is none."""

    def write() -> str:
        raise MemoryError

    put(ValueError("no"), write)
    strange = ValueError("no")
    strange.__notes__ = "no list"  # type: ignore[assignment]
    put(strange, lambda: TEXT)
    assert strange.__notes__ == "no list"  # type: ignore[comparison-overlap]
