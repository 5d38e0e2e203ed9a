"""YAML that people or programs wrote."""

import io
import tracemalloc
from pathlib import Path

import pytest
import yaml

from quotascope.quotas import STDIN, InvalidQuotas, Located, StrictLoader, load, load_file, refusing


def strictly(text: str) -> object:
    return yaml.load(text, StrictLoader)  # noqa: S506 - a SafeLoader


def test_what_is_usual_is_read() -> None:
    """Anchors, merges, every kind of scalar, and thousands of rules that share settings are read."""
    text = "a: &a {x: 1, y: 0x1f}\nb: {<<: *a, x: 2.5}\nc: [*a, 2026-01-01, ~, 'é']\n"
    assert strictly(text) == yaml.safe_load(text)
    rules = "".join(f"\n- {{<<: *a, user: u{number}}}" for number in range(3_000))
    assert strictly(f"- &a {{x: 1, y: 2}}{rules}") is not None


@pytest.mark.parametrize(
    "text",
    [
        *("!!timestamp x", "!!int ''", "!!int x", "!!float ''", "!!bool x", "!!binary ü", "2026-13-45"),
        *("a: [1, {b: !!int -}]", "0x" + "f" * 5_000, ":".join(["59"] * 5_000), "9" * 400, "9" * 5_000),
        *("&a [*a]", "&a {b: *a}", "&a {<<: *a}"),
    ],
)
def test_what_does_not_fit_is_an_error_with_its_line(text: str) -> None:
    """The error has the line, even where PyYAML raises an error of Python, or would write a number for minutes."""
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        strictly(text)
    assert caught.value.problem_mark is not None
    assert caught.value.problem_mark.line == 0
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    ("first_line", "line"),
    [
        ("a0: &a0 [x, x]", "a{n}: &a{n} [{aliases}]"),
        ("a0: &a0 {k0: 1}", "a{n}: &a{n} {{<<: [{aliases}], k{n}: 1}}"),
        ("a0: &a0 {k0: 1}", "a{n}: &a{n} {{k: [{aliases}]}}"),
    ],
    ids=["lists", "merges", "lists in mappings"],
)
def test_aliases_stand_for_no_more_than_so_much(first_line: str, line: str) -> None:
    """Aliases that would expand a kilobyte beyond any memory are refused with little memory."""
    text = "\n".join([first_line, *(line.format(n=n, aliases=", ".join([f"*a{n - 1}"] * 9)) for n in range(1, 30))])
    tracemalloc.start()
    try:
        with pytest.raises(yaml.MarkedYAMLError, match="repeats too much"):
            strictly(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_values_know_their_lines() -> None:
    """Mappings, lists and scalars have lines; an empty text, or one with comments only, is an empty mapping."""
    scalar = Located(line=2, value=1, text="1")
    two = Located(line=3, value={"b": Located(line=3, value="two", text="two", quoted=True)})
    assert load("a:\n  - 1\n  - b: 'two'\n", "x") == Located(line=1, value={"a": Located(line=2, value=(scalar, two))})
    assert (scalar.mapping, scalar.items) == (None, None)
    assert load("", "x") == load("# no\n", "x") == Located(line=1, value={})


def test_what_aliases_repeat_is_read_once() -> None:
    """Rules that share settings may share the text."""
    mapping = load("a: &a [x, x]\nb: [*a, *a]\n", "x").mapping or {}
    first_alias, second = mapping["b"].items or ()
    assert first_alias is second is mapping["a"]


def test_a_file_or_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte order mark is no part of the text; a wrong text appears only in the message."""
    path = tmp_path / "q.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_file(path).mapping == {"a": Located(line=1, value=1, text="1")}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: [")))
    with pytest.raises(InvalidQuotas, match="standard input: line 1") as caught:
        load_file(STDIN)
    assert caught.value.__suppress_context__


def test_what_is_no_problem_of_the_file_passes() -> None:
    """A room's own error within the block is not one of the file."""
    with pytest.raises(KeyError), refusing(lambda problem: InvalidQuotas("x", [problem])):
        raise KeyError
