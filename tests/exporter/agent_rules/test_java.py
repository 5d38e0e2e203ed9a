"""Java's regular expressions in Python's."""

import pytest

from quotascope.exporter.agent_rules.java import compiled, expanded
from quotascope.exporter.errors import ConfigError


@pytest.mark.parametrize(
    ("pattern", "text", "template", "result"),
    [
        ("b(.)", "abcd", "$1-$0", "c-abcd"),
        (r"(?<name>\w+)><", "a<b><", "${name}", "b"),
        (r"\Qa.b\E(c)?", "xa.bz", "[$1]", "[]"),
        (r"(?i)KAFKA\.(\w+)", "kafka.server", "$1", "server"),
        (r"(\p{Alpha}+)[\p{Digit}.]+", "ab1.2", "$1", "b"),
        (r"([a-z-]+)$", "x><>byte-rate", "$1", "e"),
        ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)", "abcdefghij", "$10$1", "ja"),
        ("(a)b", "ab", "$12", "a2"),
        ("(a)b", "ab", r"\$1\\", r"$1\ "[:-1]),
        ("a++b", "aab", "$0", "aab"),
    ],
)
def test_a_rule_matches_as_in_java(pattern: str, text: str, template: str, result: str) -> None:
    """A pattern matches anywhere in the text, with the text before it taken greedily."""
    match = compiled(pattern).fullmatch(text)
    assert match is not None
    assert expanded(template, match) == result


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\u2028b"])
def test_a_dot_stops_at_line_ends(text: str) -> None:
    assert compiled("a.b").fullmatch(text) is None
    assert compiled("a").fullmatch(text) is None
    assert compiled(r"a[\s\S]b").fullmatch("a\nb") is not None


@pytest.mark.parametrize("pattern", ["(", "[a-z&&[^b]]", r"\p{IsGreek}", r"a(?i)b", r"\R", "[a"])
def test_what_cannot_be_checked_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"no regular expression|cannot be checked"):
        compiled(pattern)


@pytest.mark.parametrize("template", ["$2", "${b}", "$", "a\\"])
def test_a_reference_to_nothing_is_refused(template: str) -> None:
    match = compiled("(a)").fullmatch("a")
    assert match is not None
    with pytest.raises(ConfigError, match=r"no such group|means nothing"):
        expanded(template, match)
