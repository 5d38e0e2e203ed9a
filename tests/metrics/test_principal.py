"""The one place where user names are sanitized."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import ANONYMOUS, MalformedName, Principal


def test_both_spellings() -> None:
    """A principal has a name for people and one for tags."""
    principal = Principal("CN=app,O=Org")
    assert (principal.name, principal.sanitized) == (
        "CN=app,O=Org",
        "CN%3Dapp%2CO%3DOrg",
    )
    assert ANONYMOUS.sanitized == "ANONYMOUS"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_round_trip(name: str) -> None:
    """Every name is found again from its tag."""
    principal = Principal(name)
    again = Principal.from_sanitized(principal.sanitized)
    assert again == principal
    assert hash(again) == hash(principal)


def test_a_given_tag_is_kept() -> None:
    """A tag that Kafka would have written otherwise stays as it was given."""
    principal = Principal.from_sanitized("a%3db")
    assert (principal.name, principal.sanitized) == ("a=b", "a%3db")
    assert principal != Principal("a=b")
    assert principal != "a=b"


def test_malformed() -> None:
    """Text with a lone percent sign is no sanitized name."""
    with pytest.raises(MalformedName):
        Principal.from_sanitized("100%")


def test_repr_is_one_line() -> None:
    """A hostile name cannot break a log line."""
    assert repr(Principal("a\nb")) == "Principal('a\\nb')"
