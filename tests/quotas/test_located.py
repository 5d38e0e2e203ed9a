import io
from pathlib import Path

import pytest

from quotascope.quotas import STDIN, InvalidQuotas, Located, load, load_file


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
def test_what_is_wrong_is_told(text: str, reason: str) -> None:
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


def test_a_file_or_standard_input_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte order mark is no part of it."""
    path = tmp_path / "q.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_file(path).mapping is not None
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: [")))
    with pytest.raises(InvalidQuotas, match="standard input: line 1"):
        load_file(STDIN)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A missing file, and one that is no text."""
    with pytest.raises(InvalidQuotas, match="No such file"):
        load_file(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidQuotas, match="is not UTF-8"):
        load_file(tmp_path / "b.yaml")
