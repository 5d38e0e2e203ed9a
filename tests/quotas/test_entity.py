"""Entities and numbers as text."""

from __future__ import annotations

import re
from ast import literal_eval

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.quotas.names import entities, quota_sets

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.metrics.entities import Name
from quotascope.quotas import IpEntity, QuotasError, QuotaSet, from_admin, number, number_text, to_admin


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


_TOKEN = r'<default>|"(?:[^"\\]|\\.)*"|[^\s"<>]+'
_SHAPE = re.compile(rf"([1-8]) (?:({_TOKEN}) / ({_TOKEN})|(user|client-id) ({_TOKEN}))")


def _read(rule: str) -> QuotaEntity:
    """What a rule was spelled from, by a reader of its own."""
    found = _SHAPE.fullmatch(rule)
    assert found is not None, rule
    user, client_id, kind, single = found[2], found[3], found[4], found[5]
    if kind is not None:
        user, client_id = (single, None) if kind == "user" else (None, single)
    names: list[Name | None] = [
        None
        if text is None
        else DEFAULT
        if text == "<default>"
        else literal_eval(text)
        if text.startswith('"')
        else text
        for text in (user, client_id)
    ]
    entity = QuotaEntity(*names)
    assert entity.level.number == int(found[1])
    return entity


@given(entities)
@example(QuotaEntity("<default>"))
@example(QuotaEntity("user", "/"))
@example(QuotaEntity("a / b"))
@example(QuotaEntity("\ud800", '\\"'))
@example(QuotaEntity(None, ""))
def test_a_rule_is_one_printable_line_that_can_be_read_back(entity: QuotaEntity) -> None:
    """So no two rules are spelled alike, whatever clients call themselves."""
    assert entity.rule.isprintable()
    assert _read(entity.rule) == entity


def test_long_names_stay_short_and_distinct() -> None:
    """Of ten thousand characters some are shown; a name that looks like what is shown is another."""
    long = "x" * 10_000
    names = [long, long + "y", "x" * 200, "x" * 201]
    names += [QuotaEntity(long).rule.removeprefix("3 user ")]
    rules = [QuotaEntity(name).rule for name in names]
    assert len(set(rules)) == len(names)
    assert max(map(len, rules)) < 300


@pytest.mark.parametrize(
    ("entity", "rule"),
    [
        (QuotaEntity("alice", "etl"), "1 alice / etl"),
        (QuotaEntity("alice", DEFAULT), "2 alice / <default>"),
        (QuotaEntity("svc:team a"), '3 user "svc:team a"'),
        (QuotaEntity(DEFAULT, "etl"), "4 <default> / etl"),
        (QuotaEntity(DEFAULT, DEFAULT), "5 <default> / <default>"),
        (QuotaEntity(DEFAULT), "6 user <default>"),
        (QuotaEntity(None, "etl"), "7 client-id etl"),
        (QuotaEntity(None, DEFAULT), "8 client-id <default>"),
        (IpEntity("::1"), "ip ::1"),
        (IpEntity(DEFAULT), "ip <default>"),
    ],
)
def test_the_shapes_of_rules(entity: QuotaEntity | IpEntity, rule: str) -> None:
    """A pair has a slash, a default angle brackets, and users and client-ids alone say which they are."""
    assert entity.rule == rule


@given(st.floats(1e-9, 1e300) | st.integers(1, 2**63).map(float))
def test_a_value_is_read_back_exactly(value: float) -> None:
    """Nothing is rounded on the way through a file or a command."""
    assert number(number_text(value)) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", ".5", "0100", "1:30", "0x10", "1__0", "1e", "٣", "1 0", "1\n"])
def test_what_is_no_plain_number_is_none(text: str) -> None:
    """YAML and Python would make something else of most of them."""
    assert number(text) is None


def test_plain_numbers_may_be_grouped_and_have_an_exponent() -> None:
    """As people write large numbers."""
    assert number("10_485_760") == 10_485_760
    assert number("5e6") == number("5.0E+6") == 5_000_000
    assert number("-1") == -1
