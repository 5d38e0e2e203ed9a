import tracemalloc

import pytest
import yaml

from quotascope.quotas import StrictLoader


def loaded(text: str) -> object:
    """What a document says."""
    return yaml.load(text, StrictLoader)  # noqa: S506 - a SafeLoader


def multiplying(first: str, line: str, lines: int = 30) -> str:
    """Aliases of aliases: a kilobyte of text that stands for more than any memory holds."""
    repeated = [
        line.format(n=n, aliases=", ".join([f"*a{n - 1}"] * 9)) for n in range(1, lines)
    ]
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
