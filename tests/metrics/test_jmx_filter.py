"""Which MBeans are shown."""

import pytest

from quotascope.metrics import InvalidConfig, JmxFilter

PRODUCE = "kafka.server:type=Produce,user=alice"


@pytest.mark.parametrize(
    ("include", "exclude", "allowed"),
    [
        (".*", "", True),
        ("kafka\\.server:.*", "", True),
        ("kafka", "", False),
        ("type=Produce", "", False),
        (".*", ".*user=.*", False),
        (".*", "user=alice", True),
        (".*type=(Fetch|Produce).*", ".*type=Fetch.*", True),
        (".*[.]server.*", "", True),
        ("kafka.server[^.]+", "", True),
        ("kafka.server[]:.]type.*", "", True),
        ("(?s).*", "", True),
    ],
)
def test_the_whole_name_must_match(include: str, exclude: str, allowed: bool) -> None:  # noqa: FBT001 - expected
    """A part of the name is not enough, neither to show nor to hide it."""
    assert JmxFilter(include, exclude).allows(PRODUCE) is allowed


@pytest.mark.parametrize("end", ["\r", "\u0085", "\u2028", "\u2029"])
def test_a_dot_matches_no_line_end(end: str) -> None:
    """Java's dot does not, so the default filter hides such a client's MBean; the flag s shows it."""
    name = f'kafka.server:type=Produce,client-id="a{end}b"'
    assert not JmxFilter().allows(name)
    assert JmxFilter("(?s).*").allows(name)


def test_classes_are_of_ascii() -> None:
    """A word character is an ASCII one."""
    assert JmxFilter("\\w").allows("a")
    assert not JmxFilter("\\w").allows("é")


@pytest.mark.parametrize(
    "expression", ["(", "[a[b]]", "[a-z&&[^b]]", "*", "\\p{Alpha}", "(?<name>a)"]
)
def test_refuses_what_it_does_not_understand(expression: str) -> None:
    """An expression of Java's that means something else here is an error, not another filter."""
    with pytest.raises(InvalidConfig):
        JmxFilter(exclude=expression)
