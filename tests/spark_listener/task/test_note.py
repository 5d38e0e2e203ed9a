import json
import traceback
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.clients.accounting import OVERFLOW, Client, ClientTotals, Side
from quotascope.spark_listener.task.note import PREFIX, AttemptKey, Note, put, read, text_of
from quotascope.spark_listener.task.rows import clipped

ATTEMPT = AttemptKey(stage=3, number=1, task=17)
ALICE = ClientTotals(Client("alice", "etl", "write"), 880, 4, 250, quota_retries=2)
NOTE = Note("", (ALICE,))
LINE = text_of(ATTEMPT, NOTE)
TRACEBACK = f"""Traceback (most recent call last):
  File "job.py", line 3, in send
    raise ValueError("no")
ValueError: no
{LINE}
"""

NAMES = st.text(st.one_of(st.characters(), st.sampled_from("\n\r\"'\\<\u2028\ud800😀")), max_size=300)
SIDES: list[Side] = ["read", "write", "admin"]
TOTALS = st.builds(
    lambda user, client_id, side, counts: ClientTotals(Client(clipped(user), clipped(client_id), side), **counts),
    NAMES,
    NAMES,
    st.sampled_from(SIDES),
    st.fixed_dictionaries(
        dict.fromkeys(["throttled_ms", "responses", "longest_ms", "quota_retries"], st.integers(0, 10**12))
    ),
)


def test_the_driver_reads_what_the_task_wrote() -> None:
    """The note is read from the text of each version of Spark, and from the margin of an exception group."""
    newest = f"[PYTHON_EXCEPTION] An exception was thrown from the Python worker: {TRACEBACK} SQLSTATE: 38000"
    joined = f"{TRACEBACK.rstrip()} SQLSTATE: 38000"
    grouped = f"  | ValueError: no\n  | {LINE}\n  +----"
    for text in (TRACEBACK, newest, joined, TRACEBACK.rstrip(), LINE, f"\n{LINE}\n", grouped):
        assert read(text, ATTEMPT) == NOTE


@given(st.lists(TOTALS, max_size=12, unique_by=lambda totals: totals.client), NAMES)
def test_any_names_arrive(totals: list[ClientTotals], query: str) -> None:
    """The note is one line of ASCII with any names of clients."""
    note = Note(query[:100], tuple(totals), tuple(totals[1:]))
    text = text_of(ATTEMPT, note)
    assert text.isascii()
    assert text.isprintable()
    parsed = read(f"ValueError: no\n{text}\n", ATTEMPT)
    assert parsed is not None
    assert sorted(parsed.totals) == sorted(note.totals)
    assert sorted(parsed.reported) == sorted(note.reported)
    assert parsed.query == note.query


def test_a_note_of_another_attempt_is_not_this_ones() -> None:
    """Texts that are passed on, or made up, name other numbers."""
    for other_attempt in (AttemptKey(3, 1, 18), AttemptKey(3, 0, 17), AttemptKey(4, 1, 17)):
        assert read(TRACEBACK, other_attempt) is None


@pytest.mark.parametrize(
    "text",
    [
        f"ValueError: {LINE}",
        f'    raise ValueError("{LINE}")',
        f"ValueError: no\nsaid {LINE}",
        f"ValueError: no\n{LINE} and more",
        f"ValueError: no\n{LINE[:-1]}",
        f"ValueError: no\n{' ' * 41}{LINE}",
        "",
        PREFIX,
        f"{PREFIX}{'[' * 5_000}",
        f"{PREFIX}{{}}",
        f"{PREFIX}null",
        f"{PREFIX}{'9' * 6_000}",
        pytest.param(LINE.replace('"number":1', '"number":true'), id="true is not 1"),
        pytest.param(LINE.replace('"query":""', '"query":7'), id="no query"),
        pytest.param(LINE.replace('"clients":', '"clients":3,"rows":'), id="no rows"),
        pytest.param(LINE.replace('"query":', '"reported":3,"query":'), id="no reported rows"),
    ],
)
def test_what_only_looks_like_a_note_is_none(text: str) -> None:
    """A line that quotes a note is the program's own text."""
    assert read(text, ATTEMPT) is None


@pytest.mark.parametrize(
    "row",
    [
        ["alice", "etl", "write", -1, 1, 1, 0],
        ["alice", "etl", "write", 1.5, 1, 1, 0],
        ["alice", "etl", "write", True, 1, 1, 0],
        ["alice", "etl", "write", 2**60, 1, 1, 0],
        ["alice", "etl", "sideways", 1, 1, 1, 0],
        ["alice", "etl", [], 1, 1, 1, 0],
        ["alice", None, "write", 1, 1, 1, 0],
        ["alice", "etl", "write", 1, 1, 1],
        "alice",
    ],
)
def test_strange_rows_make_no_note(row: object) -> None:
    """Numbers that cannot be counts are not counted."""
    values = {**ATTEMPT._asdict(), "query": "", "clients": [row]}
    assert read(PREFIX + json.dumps(values), ATTEMPT) is None
    assert read(PREFIX + json.dumps({**values, "clients": [], "reported": [row]}), ATTEMPT) is None


def test_the_fullest_note_stands() -> None:
    """Of an attempt's notes, which a chain prints in any order, the fullest one counts."""
    fuller = Note("", (ALICE._replace(throttled_ms=900, responses=5),))
    later = text_of(ATTEMPT, fuller)
    for notes in ((LINE, later), (later, LINE)):
        assert read("\n".join(notes), ATTEMPT) == fuller


def test_a_note_is_of_bounded_length_and_its_sums_are_true() -> None:
    """
    Clients throttled shortest are counted together, by side.

    Each count is a sum, but for the longest single wait.
    """
    names = [f"client-{number}-" + "\U0001f600" * 150 for number in range(100)]
    totals = tuple(
        ClientTotals(Client("", clipped(name), "read"), number, 2, number, 0, 4) for number, name in enumerate(names)
    )
    text = text_of(ATTEMPT, Note("", totals))
    assert len(text) <= 8_000
    note = read(text, ATTEMPT)
    assert note is not None
    *single, overflow = note.totals
    assert [totals.throttled_ms for totals in single] == [99 - n for n in range(len(single))]
    together = range(100 - len(single))
    assert len(together) > 2
    assert overflow == ClientTotals(
        Client(OVERFLOW, OVERFLOW, "read"),
        throttled_ms=sum(together),
        responses=2 * len(together),
        longest_ms=together[-1],
        quota_retries=4 * len(together),
    )


def test_a_flood_does_not_hide_the_note_after_it() -> None:
    """A huge message of guessed notes does not hide the note after it."""
    guesses = [text_of(AttemptKey(3, 1, task), NOTE) for task in range(2_000)]
    text = "\n".join(["ValueError: ", *guesses, "x" * 1_000_000, LINE])
    assert read(text, ATTEMPT) == NOTE
    assert read("\n".join(guesses), ATTEMPT) is None


class Old:
    """Hides the notes of newer Pythons, as before 3.11."""

    @property
    def add_note(self) -> object:
        raise AttributeError


class OldValue(Old, ValueError):  # type: ignore[misc]  # on purpose
    """Shows its arguments."""


class OldKey(Old, KeyError):  # type: ignore[misc]  # on purpose
    """A key with a text of its own."""


class OldFile(Old, FileNotFoundError):  # type: ignore[misc]  # on purpose
    """Shows others."""


class OldMute(Old, Exception):  # type: ignore[misc]  # on purpose
    def __str__(self) -> str:
        raise RuntimeError


def printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def fail(error: Exception) -> None:
    raise error


def raised(error: Exception, context: Exception | None = None) -> Exception:
    """Return an exception with a traceback, and perhaps with a context."""
    try:
        try:
            fail(context or error)
        except Exception:  # noqa: BLE001 - of any class
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
    "old and chained": lambda: raised(OldFile(2, "No", "x"), OldFile(13, "Denied")),
    "old and mute": lambda: raised(OldMute("no")),
}


@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)
def test_the_traceback_has_the_newest_note(make: Callable[[], Exception]) -> None:
    """
    The traceback has the newest note on every Python.

    The exception's type and first arguments stay, as programs read them.
    """
    error = make()
    arguments = error.args
    for _ in range(3):  # scopes that are nested each write one
        put(error, lambda: LINE)
    assert read(printed(error), ATTEMPT) == NOTE
    assert printed(error).count(LINE) == 1
    assert error.args[: len(arguments)] == arguments


def test_an_exception_that_hides_what_was_before_has_the_note() -> None:
    """The note is shown with `from None`, and with a cause."""
    for cause in (None, OldFile(13, "Denied")):
        error = OldFile(2, "No such file")
        error.__context__ = KeyError("hidden")
        error.__cause__ = cause
        put(error, lambda: LINE)
        text = printed(error)
        assert read(text, ATTEMPT) == NOTE
        assert "hidden" not in text


def test_a_chain_that_has_no_end_is_left_alone() -> None:
    """An endless chain of exceptions, which a program can make, is left alone."""
    first_error, second = OldMute("one"), OldMute("two")
    first_error.__context__, second.__context__ = second, first_error
    put(first_error, lambda: LINE)
    assert (first_error.__context__, second.__context__) == (second, first_error)


def test_nothing_takes_the_place_of_what_is_the_programs() -> None:
    """A program's own notes stay, and a note that cannot be written or attached is left out."""

    def write() -> str:
        raise MemoryError

    put(ValueError("no"), write)
    error, strange = ValueError("no"), ValueError("no")
    error.add_note("look here")
    strange.__notes__ = "no list"  # type: ignore[assignment]
    for exception in (error, error, strange):
        put(exception, lambda: LINE)
    assert error.__notes__ == ["look here", LINE]
    assert strange.__notes__ == "no list"  # type: ignore[comparison-overlap]
