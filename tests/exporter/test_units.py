"""Numbers and names are short, and say what they mean."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import texts

from quotascope.exporter import units
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType


def test_examples_in_docstrings_are_true() -> None:
    """Every example in the module gives what it says."""
    result = doctest.testmod(units)
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize(
    ("quota_type", "usage", "limit", "text"),
    [
        (QuotaType.PRODUCE, 238_095.0, 250_000.0, "238 / 250 kB/s"),
        (QuotaType.PRODUCE, 900.0, 2e9, "0.00 / 2.00 GB/s"),
        (QuotaType.FETCH, 12.0, None, "12.0 / - B/s"),
        (QuotaType.FETCH, None, 1e6, "? / 1.00 MB/s"),
        (QuotaType.FETCH, -5_000.0, 1_000.0, "-5.00 / 1.00 kB/s"),
        (QuotaType.REQUEST, 0.0812, 0.2, "0.08 / 0.20 thr"),
        (QuotaType.CONTROLLER_MUTATION, 1.5, 2_000.0, "1.50 / 2000 mut/s"),
    ],
)
def test_usage_of_limit(
    quota_type: QuotaType, usage: float | None, limit: float | None, text: str
) -> None:
    """Usage and limit share the unit of the larger one; what is not known is a question mark, no limit a dash."""
    assert units.usage_of_limit(quota_type, usage, limit) == text


@given(st.floats(min_value=-1e3, max_value=1e9))
def test_percent_fits_its_column(ratio: float) -> None:
    """No ratio takes more than the four characters that it has in the table."""
    assert len(units.percent(ratio)) <= 4


@given(st.floats(min_value=0, max_value=9_999))
def test_seconds_fit_their_column(value: float) -> None:
    """Up to hours a duration takes no more than its six characters."""
    assert len(units.seconds(value)) <= 6 + (value >= 9_999.5)


@given(user=texts, client_id=texts)
def test_names_cannot_break_a_line(user: str, client_id: str) -> None:
    """Whatever strangers call themselves, a name is printable and of bounded length."""
    name = units.entity_name(user, client_id)
    assert name.isprintable()
    assert len(name) < 25_000


@pytest.mark.parametrize(
    ("user", "client_id", "name"),
    [
        ("<default>", None, "user <default>"),
        (DEFAULT, DEFAULT, "<default> / <default>"),
        (DEFAULT, "app", "<default> / app"),
        ("", "", "empty client-id"),
    ],
)
def test_entity_name(user: str | None, client_id: str | None, name: str) -> None:
    """A default reads as the label of the metrics has it; one without any name sent no client-id."""
    assert units.entity_name(user, client_id) == name


@pytest.mark.parametrize(
    ("entity", "name", "level"),
    [
        (QuotaEntity("u", "c"), "1 u / c", "user_client"),
        (QuotaEntity("u", DEFAULT), "2 u / <default>", "user_default_client"),
        (QuotaEntity("u", None), "3 user u", "user"),
        (QuotaEntity(DEFAULT, "c"), "4 <default> / c", "default_user_client"),
        (QuotaEntity(DEFAULT, None), "6 user <default>", "default_user"),
        (QuotaEntity(None, "c"), "7 client c", "client"),
        (QuotaEntity(None, DEFAULT), "8 client <default>", "default_client"),
        (QuotaEntity("other", None), "no rule", "none"),
    ],
)
def test_rule_and_level(entity: QuotaEntity, name: str, level: str) -> None:
    """A rule shows its place among the eight levels, and its level as the metrics' label has it."""
    resolution = QuotaRules({entity: 1.0}).decide("u", "c")
    assert units.rule_name(resolution) == name
    assert units.level_name(resolution) == level


def test_no_resolution_is_no_rule() -> None:
    """An entity without limits known has no rule to show."""
    assert (units.rule_name(None), units.level_name(None)) == ("no rule", "none")
