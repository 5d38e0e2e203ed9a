"""Entities and numbers as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.quotas.names import quota_sets

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import (
    IpEntity,
    QuotasError,
    QuotaSet,
    described,
    from_admin,
    number,
    number_text,
    to_admin,
)


@given(quota_sets)
def test_the_admin_api_has_the_same_entities(quotas: QuotaSet) -> None:
    """Whatever the names are, and None for the default."""
    assert [from_admin(to_admin(entity)) for entity in quotas] == list(quotas)


def test_a_default_is_no_name() -> None:
    """The default entity is None for the Admin API; a name that only looks like it is a name."""
    assert to_admin(QuotaEntity(DEFAULT, "<default>")) == {
        "user": None,
        "client-id": "<default>",
    }
    assert to_admin(IpEntity(DEFAULT)) == {"ip": None}


def test_an_unknown_kind_of_entity_is_an_error() -> None:
    """It must not be taken for another one, nor be left out in silence."""
    with pytest.raises(QuotasError, match="'group'"):
        from_admin({"group": "a"})
    with pytest.raises(QuotasError):
        from_admin({"ip": "1.2.3.4", "user": "a"})


@given(quota_sets)
def test_a_description_is_one_printable_line(quotas: QuotaSet) -> None:
    """It can be put into messages, comments and terminals."""
    for entity in quotas:
        assert described(entity).isprintable()
        assert len(described(entity)) < 3_000


def test_descriptions_tell_the_shapes_apart() -> None:
    """A literal name is in quotes, a default is not."""
    assert described(QuotaEntity("a", DEFAULT)) == "user 'a', default client-id"
    assert described(QuotaEntity(None, "c")) == "client-id 'c'"
    assert described(IpEntity("::1")) == "ip '::1'"
    assert described(IpEntity(DEFAULT)) == "default ip"


@given(st.floats(1e-9, 1e300) | st.integers(1, 2**63).map(float))
def test_a_value_is_read_back_exactly(value: float) -> None:
    """Nothing is rounded on the way through a file or a command."""
    assert number(number_text(value)) == value


@pytest.mark.parametrize(
    "text",
    ["", "nan", "inf", ".5", "0100", "1:30", "0x10", "1__0", "1e", "٣", "1 0", "1\n"],
)
def test_what_is_no_plain_number_is_none(text: str) -> None:
    """YAML and Python would make something else of most of them."""
    assert number(text) is None


def test_plain_numbers_may_be_grouped_and_have_an_exponent() -> None:
    """As people write large numbers."""
    assert number("10_485_760") == 10_485_760
    assert number("5e6") == number("5.0E+6") == 5_000_000
    assert number("-1") == -1
