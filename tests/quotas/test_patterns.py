from __future__ import annotations

import builtins
from typing import Any

import pytest
from hypothesis import given
from tests.strategies import broken_texts, texts

from quotascope.quotas.patterns import matcher


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("app", "app", True),
        ("app", "app1", False),
        ("app", "my app", False),
        ("app.*", "app\nwith a line", True),
        ("(?i)APP", "app", True),
        ("a|b", "b", True),
        ("a|b", "bc", False),
        ("é.", "é😀", True),
        ("", "", True),
    ],
)
def test_a_name_matches_as_a_whole(pattern: str, name: str, expected: bool) -> None:  # noqa: FBT001 - an expectation
    """A pattern matches as label matchers of Prometheus do; a line end in a name hides nothing."""
    assert matcher(pattern)(name) is expected


@given(name=texts | broken_texts)
def test_any_name_can_be_asked_for(name: str) -> None:
    """A pattern is matched with any name, also with halves of surrogate pairs and control characters."""
    assert matcher(".*")(name)


@pytest.mark.parametrize(
    ("pattern", "reported"),
    [
        ("(", r"'\(' is not an RE2 expression: missing \)"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
        ("\ud800", "is not an RE2 expression"),
    ],
)
def test_a_wrong_pattern_is_reported(pattern: str, reported: str) -> None:
    """A pattern that cannot be matched in linear time is not an RE2 expression."""
    with pytest.raises(ValueError, match=reported):
        matcher(pattern)


def test_a_hostile_name_takes_no_time() -> None:
    """A hostile name, for which Python's own expressions would never end, is matched at once."""
    assert not matcher("(a+)+b")("a" * 10_000)


def test_a_missing_engine_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra for patterns is a sentence, not a traceback."""
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ValueError, match=r"in a clone of quotascope: pip install '\.\[patterns\]'$"):
        matcher("a")
