"""YAML that people or programs wrote."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
import yaml

from quotascope.quotas import STDIN, InvalidQuotas, Located, StrictLoader, load, load_file, named, refusing, text_of


class _Refused(Exception):
    """What a room makes of a problem."""


def _refused(path: Path) -> str:
    with pytest.raises(_Refused) as caught, refusing(_Refused):
        yaml.safe_load(text_of(path))
    assert caught.value.__suppress_context__
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a: \xff", "is not UTF-8 text (byte 3)"),
        (b"a: 1\nb: [", "line 2: not valid YAML: "),
        (b"a: \x00", "is not valid YAML: unacceptable character"),
    ],
)
def test_problem_is_reported_in_the_room_s_own_error(tmp_path: Path, data: bytes, problem: str) -> None:
    """Whatever a file holds that is no YAML, the message says what and where."""
    path = tmp_path / "file.yaml"
    path.write_bytes(data)
    assert problem in _refused(path)


def test_file_that_is_not_there(tmp_path: Path) -> None:
    """The message is the system's, without its number."""
    problem = _refused(tmp_path / "file.yaml")
    assert problem == "cannot be read: No such file or directory"


def test_what_is_no_problem_of_the_file_passes() -> None:
    """A room's own error within the block is not one of the file."""
    with pytest.raises(KeyError), refusing(_Refused):
        raise KeyError


def test_standard_input_has_a_name() -> None:
    """A file is called by its path."""
    assert named(STDIN) == "standard input"
    assert named(Path("a/b")) == "a/b"


def loaded(text: str) -> object:
    """What a document says."""
    return yaml.load(text, StrictLoader)  # noqa: S506 - a SafeLoader


def multiplying(first: str, line: str, lines: int = 30) -> str:
    """Aliases of aliases: a kilobyte of text that stands for more than any memory holds."""
    repeated = [line.format(n=n, aliases=", ".join([f"*a{n - 1}"] * 9)) for n in range(1, lines)]
    return "\n".join([first, *repeated])


def test_what_is_usual_is_read() -> None:
    """Anchors, merges and every kind of scalar."""
    text = "a: &a {x: 1, y: 0x1f}\nb: {<<: *a, x: 2.5}\nc: [*a, 2026-01-01, ~, 'é']\n"
    document = loaded(text)
    assert document == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        "!!timestamp x",
        "!!int ''",
        "!!int x",
        "!!float ''",
        "!!bool x",
        "!!binary ü",
        "2026-13-45",
        "a: [1, {b: !!int -}]",
        "0x" + "f" * 5_000,
        ":".join(["59"] * 5_000),
        "9" * 400,
        "9" * 5_000,
        "&a [*a]",
        "&a {b: *a}",
        "&a {<<: *a}",
    ],
)
def test_what_does_not_fit_is_an_error_with_its_line(text: str) -> None:
    """Where PyYAML raises whatever Python makes of it, or writes a number for minutes."""
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        loaded(text)
    assert caught.value.problem_mark is not None
    assert caught.value.problem_mark.line == 0
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    ("first", "line"),
    [
        ("a0: &a0 [x, x]", "a{n}: &a{n} [{aliases}]"),
        ("a0: &a0 {k0: 1}", "a{n}: &a{n} {{<<: [{aliases}], k{n}: 1}}"),
        ("a0: &a0 {k0: 1}", "a{n}: &a{n} {{k: [{aliases}]}}"),
    ],
)
def test_aliases_stand_for_no_more_than_so_much(first: str, line: str) -> None:
    """In lists and in merges; the memory that it takes to find out is bounded as well."""
    text = multiplying(first, line)
    tracemalloc.start()
    try:
        with pytest.raises(yaml.MarkedYAMLError, match="repeats too much"):
            loaded(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_many_rules_may_share_one_text() -> None:
    """A file with thousands of rules that merge the same settings is usual."""
    rules = "\n".join(f"- {{<<: *a, user: u{n}}}" for n in range(3_000))
    assert loaded(f"- &a {{x: 1, y: 2}}\n{rules}") is not None


def read(text: str) -> Located:
    """A document called `x`."""
    return load(text, "x")


def test_values_know_their_lines() -> None:
    """Mappings, lists and scalars."""
    document = read("a:\n  - 1\n  - b: 'two'\n")
    assert document.mapping is not None
    items = document.mapping["a"].items
    assert items is not None
    assert [(item.line, item.value) for item in items[:1]] == [(2, 1)]
    assert items[1].mapping is not None
    second = items[1].mapping["b"]
    assert (second.line, second.value, second.quoted) == (3, "two", True)
    assert not items[0].quoted
    assert items[0].text == "1"
    assert items[0].mapping is None
    assert items[0].items is None


def test_an_empty_document_is_an_empty_mapping() -> None:
    """Nothing, or nothing but comments."""
    assert read("").mapping == read("# no\n").mapping == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "line 1: not valid YAML"),
        ("a: 1\na: 2\n", "line 2: the key 'a' is there twice"),
        (f"{'x' * 70}: 1\n" * 2, f"line 2: the key '{'x' * 60}' is there twice"),
        ("a: \x00", "is not valid YAML"),
        ("a: 2026-13-45", "line 1: not valid YAML: this is no timestamp"),
        ("a: &x [*x]", "this alias repeats too much, or what it is in"),
        ("[" * 30 + "]" * 30, "more than 20 levels"),
        ("a: !!python/object:os.system x", "not valid YAML"),
    ],
)
def test_what_is_wrong_is_reported(text: str, reason: str) -> None:
    """With the line, where it has one; nothing is executed."""
    with pytest.raises(InvalidQuotas, match=r"^x: ") as caught:
        read(text)
    assert reason in str(caught.value)


def test_what_aliases_repeat_is_read_once() -> None:
    """Rules that share settings may share the text."""
    mapping = read("a: &a [x, x]\nb: [*a, *a]\n").mapping
    assert mapping is not None
    items = mapping["b"].items
    assert items is not None
    assert items[0] is items[1] is mapping["a"]


def test_a_file_or_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte order mark is no part of it."""
    path = tmp_path / "q.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_file(path).mapping is not None
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: [")))
    with pytest.raises(InvalidQuotas, match="standard input: line 1"):
        load_file(STDIN)


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """A missing file, and one that is no text."""
    with pytest.raises(InvalidQuotas, match="No such file"):
        load_file(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidQuotas, match="is not UTF-8"):
        load_file(tmp_path / "b.yaml")
