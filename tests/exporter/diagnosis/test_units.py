"""Numbers and names are short, and say what they mean."""

import doctest
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import limits, snapshot
from tests.exporter.examples import usage as example
from tests.exporter.nodes import idle as idle_share
from tests.strategies import texts

from quotascope.exporter.diagnosis import units
from quotascope.exporter.limits import Limits
from quotascope.exporter.snapshot import Folds, NodeUsage
from quotascope.metrics.kafka.entities import NO_RULE, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

UNLIMITED = inf
"""Stands for a limit that is known to be none."""


def test_handlers_are_idle_for_no_more_than_all_of_the_time() -> None:
    """The idle ratio is at most 100 %, and unknown if a combined node reports two pools together."""
    texts = {0.041: "4% on node 1", 1.01: "100% on node 1", 1.87: "unknown"}
    nodes = {idle: (NodeUsage(broker="1", numbers=idle_share(idle)),) for idle in texts}
    assert {idle: units.handlers_idle(snapshot(nodes=node)) for idle, node in nodes.items()} == texts


def test_examples_in_docstrings_are_true() -> None:
    """Every example in the module's docstrings gives the result that it shows."""
    result = doctest.testmod(units)
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize(
    ("quota_type", "usage", "limit", "text"),
    [
        (QuotaType.PRODUCE, 238_095.0, 250_000.0, "238 / 250 kB/s"),
        (QuotaType.PRODUCE, 900.0, 2e9, "<0.01 / 2.00 GB/s"),
        (QuotaType.FETCH, 12.0, UNLIMITED, "12.0 B/s unlimited"),
        (QuotaType.FETCH, 12.0, None, "12.0 / ? B/s"),
        (QuotaType.FETCH, 0.0, UNLIMITED, "0.00 B/s unlimited"),
        (QuotaType.FETCH, None, 1e6, "? / 1.00 MB/s"),
        (QuotaType.FETCH, None, None, "? / ? B/s"),
        (QuotaType.FETCH, None, UNLIMITED, "? B/s unlimited"),
        (QuotaType.FETCH, -5_000.0, 1_000.0, "-5.00 / 1.00 kB/s"),
        (QuotaType.REQUEST, 0.0812, 0.2, "8.12 / 20.0 %"),
        (QuotaType.REQUEST, 3.0, None, "300 / ? %"),
        (QuotaType.CONTROLLER_MUTATION, 1.5, 2_000.0, "1.50 / 2000 mut/s"),
        (QuotaType.CONTROLLER_MUTATION, 1e6, UNLIMITED, "1000000 mut/s unlimited"),
        (QuotaType.REQUEST, 0.0, 1e298, "0.00 / 1e+300 %"),
        (QuotaType.REQUEST, 0.00525, 0.005, "0.53 / 0.50 %"),
        (QuotaType.REQUEST, 0.0, 0.005, "0.00 / 0.50 %"),
    ],
)
def test_usage_of_limit(quota_type: QuotaType, usage: float | None, limit: float | None, text: str) -> None:
    """Usage and limit share the unit of the larger one; unknown, unlimited and zero are three things."""
    configured = limits(rules={}) if limit == UNLIMITED else None
    bound = None if limit == UNLIMITED else limit
    entity_usage = example(quota_type, usage=usage, limit=bound, configured=configured)
    assert units.usage_of_limit(entity_usage) == text


def test_units_of_what_is_measured_and_of_what_is_configured() -> None:
    """Bytes have SI prefixes; request time is percent of a thread, as configured; counts have no prefix."""
    texts = {
        (QuotaType.PRODUCE, 0.0): ("0.00 B/s", "0.00 B/s"),
        (QuotaType.PRODUCE, 999.0): ("999 B/s", "999 B/s"),
        (QuotaType.PRODUCE, 1_000.0): ("1.00 kB/s", "1.00 kB/s"),
        (QuotaType.FETCH, 2_500_000.0): ("2.50 MB/s", "2.50 MB/s"),
        (QuotaType.FETCH, 4e9): ("4.00 GB/s", "4.00 GB/s"),
        (QuotaType.REQUEST, 200.0): ("20000 %", "200 %"),
        (QuotaType.REQUEST, 5_000.0): ("500000 %", "5000 %"),
        (QuotaType.CONTROLLER_MUTATION, 2_000.0): ("2000 mut/s", "2000 mut/s"),
    }
    assert {arguments: (units.measured(*arguments), units.amount(*arguments)) for arguments in texts} == texts
    assert units.amount(None, 2_000.0) == "2000 conn/s"


def test_limit_and_used_part() -> None:
    """The used part does not apply without a limit, is unknown with an unknown one, and may be zero or full."""
    free = limits(rules={})
    cases: list[tuple[float | None, Limits | None, float | None, tuple[str, str]]] = [
        (500.0, None, 0.0, ("500 B/s", "0%")),
        (500.0, None, None, ("500 B/s", "?")),
        (None, free, None, ("unlimited", "-")),
        (None, None, None, ("unknown", "?")),
        (None, None, 1.5, ("unknown", "150%")),
    ]
    entities = [example(limit=limit, configured=configured).entity for limit, configured, *_ in cases]
    texts_of_entities = [
        (units.limit_name(entity), units.used_name(entity, case[2]))
        for entity, case in zip(entities, cases, strict=True)
    ]
    assert texts_of_entities == [texts for *_, texts in cases]


@given(st.floats(min_value=-1e3, max_value=1e9))
def test_percent_fits_its_column(ratio: float) -> None:
    """Every ratio fits into the four characters of its column."""
    assert len(units.percent(ratio)) <= 4


@given(st.floats(min_value=0, max_value=9_999))
def test_seconds_fit_their_column(value: float) -> None:
    """Up to hours a duration takes no more than its six characters."""
    assert len(units.seconds(value)) <= 6 + (value >= 9_999.5)


@given(user=texts, client_id=texts)
def test_names_cannot_break_a_line(user: str, client_id: str) -> None:
    """An untrusted name is printable and of bounded length."""
    name = units.entity_name(user, client_id)
    assert name.isprintable()
    assert len(name) < 25_000


def test_names_of_entities_and_rules() -> None:
    """A measured name is no default; no rule was read, and an unread rule is unknown."""
    texts = {("<default>", None): 'user "<default>"', ("", "app"): "client-id app", ("", ""): 'client-id ""'}
    assert {names: units.entity_name(*names) for names in texts} == texts
    rule = QuotaRules({QuotaEntity("u"): 1.0}).decide("u", "c")
    assert [units.rule_name(resolution) for resolution in (rule, NO_RULE, None)] == ["3 user u", "no rule", "unknown"]


def test_what_is_not_shown_one_by_one() -> None:
    """The text has every reason for hidden entities with its number, and is empty without any."""
    assert units.left_out(snapshot()) == ""
    folds = Folds(overflow=1_200, excluded=3, idle=4)
    assert units.left_out(snapshot(folds=folds)) == "1200 folded, 3 excluded, 4 idle"
