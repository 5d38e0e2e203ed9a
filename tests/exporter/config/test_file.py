from __future__ import annotations

from pathlib import Path

import pytest

from quotascope.exporter.config.file import ConfigDocument, parse_document, read_document
from quotascope.exporter.errors import ConfigError


def parse(text: str, **environ: str) -> ConfigDocument:
    return parse_document(text, "q.yaml", environ)


def test_variables_are_filled_in() -> None:
    """``${NAME}`` stands for an environment variable, ``$${`` for itself; the raw text is kept for messages."""
    document = parse("a: x-${NAME}\nb: $${NAME}\nc: $NAME\n", NAME="secret")
    assert document.data == {"a": "x-secret", "b": "${NAME}", "c": "$NAME"}
    assert document.raw[("a",)] == "x-${NAME}"


def test_anchors_and_merges_work() -> None:
    """Sources that share settings may share the text; own keys win over merged ones."""
    document = parse("x: &x {k: 1, l: 2}\ny:\n  <<: *x\n  l: 3\n")
    assert document.data["y"] == {"k": 1, "l": 3}
    assert document.lines[("y", "l")] == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1, 2", "line 1: not valid YAML: expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", "line 2: not valid YAML: found character '\\t'"),
        ("a: 1\n---\nb: 2\n", "line 2: not valid YAML: but found another document"),
        ("- 1\n", "line 1: expected keys and values"),
        ("text", "line 1: expected keys and values"),
        ("a: &a [*a]", "line 1: not valid YAML: this alias repeats too much"),
        ("a: !!python/object:os.system x", "line 1: not valid YAML: could not"),
        ("a: \x00", "is not valid YAML: unacceptable character"),
    ],
)
def test_broken_file_is_one_clear_problem(text: str, expected: str) -> None:
    """What YAML cannot read is reported with its line, without a traceback."""
    with pytest.raises(ConfigError) as caught:
        parse(text)
    (problem,) = caught.value.problems
    assert caught.value.subject == "q.yaml"
    assert problem.startswith(expected)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A wrong path, a folder and binary data each have their own words."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"a: \xff")
    for path, expected in (
        (tmp_path / "none.yaml", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (binary, "is not UTF-8 text (byte 3)"),
    ):
        with pytest.raises(ConfigError) as caught:
            read_document(path, {})
        assert str(caught.value) == f"{path}: {expected}"
