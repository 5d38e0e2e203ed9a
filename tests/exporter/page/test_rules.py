"""The page of all rules."""

from __future__ import annotations

from math import inf

import pytest
from tests.exporter.examples import NOW, limits, snapshot, usage
from tests.exporter.nodes import by_ip
from tests.exporter.page.parsed import HOSTILE, Page

from quotascope.exporter.api.answers import changes_document, health_document
from quotascope.exporter.limits import LimitChange, LimitsHealth
from quotascope.exporter.page.query import PartQuery
from quotascope.exporter.page.render import PageFrame
from quotascope.exporter.page.rules import RuleQuery, find_rules, rules_page
from quotascope.exporter.snapshot import NodeUsage, Snapshot
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules


def page(state: Snapshot, **parameters: str) -> Page:
    return Page(rules_page(find_rules(state, RuleQuery.read(parameters)), PageFrame()))


KNOWN = limits()
SLOW = usage(user="zoe", configured=KNOWN, limit=500.0, usage=50.0, throttle_time_seconds=0.1)
FULL = usage(configured=KNOWN, limit=1000.0, usage=950.0)
FEW = usage(user="bob", configured=KNOWN, limit=500.0, usage=450.0)
BUSY = snapshot(SLOW, FULL, FEW)


def test_whom_a_rule_applies_to() -> None:
    """
    A rule has its count of entities, throttled ones, and the most urgent by name with a link.

    A rule without a client is distinguished from an unknown one.
    """
    rendered = page(BUSY)
    assert "6 user <default>produce500 B/s2190%user zoe on node 1, user bob on node 1-" in rendered.text
    assert "3 user aliceproduce1.00 kB/s1095%user alice on node 1-" in rendered.text
    assert "1 alice / apprequest50.0 %none----" in rendered.text
    assert {"entity?user=zoe", "entity?user=bob", "entity?user=alice"} <= {*rendered.values("a", "href")}
    silent = usage(user="eve", configured=KNOWN, limit=500.0, throttle_time_seconds=None)
    assert "6 user <default>produce500 B/s1unknownunknownuser eve" in page(snapshot(silent)).text
    host = limits(rules={}, connection_limits={"host.corp": 5.0, "10.0.0.1": 7.0})
    rendered = page(snapshot(limits=host, nodes=(NodeUsage(broker="2", numbers=by_ip({"10.0.0.1": 7.0})),)))
    assert "connections5.00 conn/sunknownunknownunknown-" in rendered.text
    assert "connections7.00 conn/s1unknown100%10.0.0.1 on node 2-" in rendered.text
    assert "The configured quotas are unknown." in page(snapshot(limits=None)).text
    assert "6 user <default>produce500 B/sunknownunknownunknown--" in page(snapshot(nodes=())).text


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ["6 user <default>", "3 user alice", "1 alice / app", "ip <default>"]),
        ({"show": "near"}, ["6 user <default>", "3 user alice"]),
        ({"show": "unused"}, ["1 alice / app", "ip <default>"]),
        ({"type": "request"}, ["1 alice / app"]),
        ({"q": "APP"}, ["1 alice / app"]),
        ({"q": "nothing"}, []),
        ({"size": "1", "offset": "1"}, ["3 user alice"]),
    ],
)
def test_some_of_them(parameters: dict[str, str], expected: list[str]) -> None:
    """Rules can be filtered by limit, name and nearness, in parts, with the most urgent first."""
    assert [rule.entity.rule for rule in find_rules(BUSY, RuleQuery.read(parameters)).rules] == expected


def test_parts_and_filters_stay_in_links() -> None:
    """Links keep parts and filters, also the link to the same as JSON."""
    rendered = page(BUSY, show="all", size="1", offset="1", q="a")
    links = rendered.values("a", "href")
    assert {"?q=a&size=1", "?q=a&offset=2&size=1"} <= set(links)
    assert "api/v1/rules?q=a&offset=1&size=1" in links
    assert "There are 4; this page is past the last." in page(BUSY, offset="9").text


@pytest.mark.parametrize("long", [1, 500])
def test_hostile_names_are_text(long: int) -> None:
    """Hostile names in rules, addresses, entities and the query are text."""
    bad = HOSTILE * long
    rules = limits(
        rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity(bad, bad): 1.0, QuotaEntity(bad): 1.0})},
        connection_limits={bad: 1.0}
    )  # fmt: skip
    full = usage(user=bad, client_id=bad, broker=bad, configured=rules, limit=1.0, usage=2.0)
    rendered = page(snapshot(full, limits=rules), q="<")
    assert rendered.text.count("<script>alert(1)</script>") >= 4
    rendered.assert_runs_nothing()


@pytest.mark.parametrize("name", [HOSTILE, HOSTILE.encode(errors="replace").decode()])
def test_names_that_may_be_a_slip(name: str) -> None:
    """
    A name that may be a slip is in its rule's row and above commands that correct it, with any characters.

    There is no command for halves of surrogate pairs.
    """
    configured = limits(
        rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity(f"User:{name}"): 5.0, QuotaEntity(DEFAULT): 500.0})}
    )
    rendered = page(snapshot(usage(user=name, configured=configured, limit=500.0, usage=50.0), limits=configured))
    assert "Names that may be a slip" in rendered.text
    assert "applies to no client; user " in rendered.text
    commands = int(name != HOSTILE)
    assert rendered.text.count("quotascope quotas set producer_byte_rate=5 --user ") == commands
    assert rendered.text.count("quotascope quotas remove producer_byte_rate --user ") == commands
    rendered.assert_runs_nothing()
    assert "a slip" not in page(BUSY).text


def test_what_changed_lately_is_listed() -> None:
    """
    The page and the API list changes, newest first, with old and new value.

    An infinite quota is unlimited, and null in JSON.
    """
    changes = (
        LimitChange(read_at=NOW, key="request_percentage", entity="a\n<b>", old=None, new=inf),
        LimitChange(read_at=NOW - 60, key="producer_byte_rate", entity="user alice", old=1000.0, new=None),
    )
    state = snapshot(limits_health=LimitsHealth(changes=changes, changes_since=NOW - 90))
    text = Page(rules_page(find_rules(state, RuleQuery()), PageFrame())).text
    assert "2026-11-21 09:03:00 UTCa\\n<b>requestnoneunlimited" in text
    assert "2026-11-21 09:02:00 UTCuser aliceproduce1.00 kB/snone" in text
    document = changes_document(state, PartQuery(size=1))
    assert (document.total, document.since, document.next) == (2, NOW - 90, "?offset=1&size=1")
    assert [(change.key, change.old, change.new) for change in document.changes] == [("request_percentage", None, None)]
    assert health_document(state).limits.changes == ()
