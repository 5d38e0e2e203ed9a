"""Addresses in the tables of `quotascope quotas`, which no recorded story has."""

from tests.cli.usages import rendered

from quotascope.cli.quotas.change_view import Affected, view
from quotascope.cli.quotas.list_view import as_json, as_table
from quotascope.exporter.ip_impact import IpImpact
from quotascope.exporter.rule_usage import IpUsage, RuleUsage
from quotascope.metrics import DEFAULT
from quotascope.quotas import IpEntity, QuotaSet, difference

KEY = "connection_creation_rate"
RULE = RuleUsage(
    entity=IpEntity(DEFAULT),
    key=KEY,
    value=10.0,
    hits=(
        IpUsage(broker="1", ip="10.0.0.1", rate=9.0, limit=10.0),
        IpUsage(broker="2", ip="10.0.0.1", rate=None, limit=10.0),
    ),
)


def test_an_address_under_a_rule_is_shown_once() -> None:
    """However many brokers measure it, with the fullest."""
    text = rendered(as_table([RULE], known=True), 90)
    assert " ".join(text.splitlines()[1].split()).endswith(
        "default ip connect 10.0 conn/s ██████░ 90% 10.0.0.1"
    )


def test_an_address_is_told_to_programs_by_broker() -> None:
    """Its level is null: addresses have no precedence but their own rule before the default."""
    (rule,) = as_json([RULE], known=True)
    assert (rule["level"], rule["used"]) == (None, 0.9)
    assert rule["hits"] == [
        {"broker": "1", "ip": "10.0.0.1", "usage": 9.0, "utilization": 0.9},
        {"broker": "2", "ip": "10.0.0.1", "usage": None, "utilization": None},
    ]


def test_an_affected_address_is_shown_with_its_limits() -> None:
    """And one of which no number is known as such."""
    changes = difference(QuotaSet(), QuotaSet({IpEntity(DEFAULT): {KEY: 10.0}}))
    affected = Affected(
        [],
        [
            IpImpact(ip="10.0.0.1", usage=12.0, before=None, after=10.0),
            IpImpact(ip="10.0.0.2", usage=None, before=20.0, after=10.0),
        ],
    )
    lines = [
        " ".join(line.split())
        for line in rendered(view(changes, affected, 9), 90).splitlines()
    ]
    assert "ip 10.0.0.1 connect 12.0 conn/s none 10.0 conn/s 120%" in lines
    assert "ip 10.0.0.2 connect ? 20.0 conn/s 10.0 conn/s" in lines


def test_nobody_and_too_many_are_told() -> None:
    """A table that is cut says so."""
    changes = difference(QuotaSet(), QuotaSet({IpEntity(DEFAULT): {KEY: 10.0}}))
    assert "nobody is affected" in rendered(view(changes, Affected([], []), 9), 90)
    one = IpImpact(ip="10.0.0.1", usage=12.0, before=None, after=10.0)
    cut = rendered(view(changes, Affected([], [one, one]), 0), 90)
    assert "and 2 more: --top shows more" in cut
    assert "10.0.0.1" not in cut
