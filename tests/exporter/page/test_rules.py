"""The page of all rules."""

from __future__ import annotations

import pytest
from tests.exporter.examples import limits, snapshot, usage
from tests.exporter.page.test_page import HOSTILE, Page

from quotascope.exporter.page.render import PageFrame
from quotascope.exporter.page.rules import RuleQuery, find_rules, rules_page
from quotascope.exporter.snapshot import ConnectionUsage, LimitedRate, NodeUsage, Snapshot
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType


def page(shown: Snapshot, **given: str) -> Page:
    return Page(rules_page(find_rules(shown, RuleQuery.read(given)), PageFrame()))


KNOWN = limits()
SLOW = usage(user="zoe", of=KNOWN, limit=500.0, usage=50.0, throttle_time_seconds=0.1)
FULL = usage(of=KNOWN, limit=1000.0, usage=850.0)
FEW = usage(user="bob", of=KNOWN, limit=500.0, usage=450.0)
BUSY = snapshot(SLOW, FULL, FEW)


def test_whom_a_rule_applies_to() -> None:
    """How many, how many throttled, how near, the most urgent by name with a link; a rule without a client is distinguished from an unknown one."""
    shown = page(BUSY)
    assert "6 user <default>produce500 B/s2190%user zoe on node 1, user bob on node 1-" in shown.text
    assert "3 user aliceproduce1.00 kB/s1085%user alice on node 1-" in shown.text
    assert "1 alice / apprequest0.50 thrnone----" in shown.text
    assert {"entity?user=zoe", "entity?user=bob", "entity?user=alice"} <= {*shown.values("a", "href")}
    silent = usage(user="eve", of=KNOWN, limit=500.0, throttle_time_seconds=None)
    assert "6 user <default>produce500 B/s1unknownunknownuser eve" in page(snapshot(silent)).text
    host = limits(rules={}, connection_limits={"host.corp": 5.0, "10.0.0.1": 7.0})
    rate = ConnectionUsage(ips={"10.0.0.1": LimitedRate(rate=7.0)})
    shown = page(snapshot(limits=host, nodes=(NodeUsage(broker="2", connections=rate),)))
    assert "connections5.00 conn/sunknownunknownunknown-" in shown.text
    assert "connections7.00 conn/s1unknown100%10.0.0.1 on node 2-" in shown.text
    assert "The configured quotas are unknown." in page(snapshot(limits=None)).text
    assert "6 user <default>produce500 B/sunknownunknownunknown--" in page(snapshot(nodes=())).text


@pytest.mark.parametrize(
    ("given", "found"),
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
def test_some_of_them(given: dict[str, str], found: list[str]) -> None:
    """The most urgent first, those without a client last; by what they limit, by name, by whether a client is near, and in parts."""
    assert [rule.entity.rule for rule in find_rules(BUSY, RuleQuery.read(given)).rules] == found


def test_parts_and_filters_stay_in_links() -> None:
    """Also in that to the same as JSON."""
    shown = page(BUSY, show="all", size="1", offset="1", q="a")
    links = shown.values("a", "href")
    assert {"?q=a&size=1", "?q=a&offset=2&size=1"} <= set(links)
    assert "api/v1/rules?q=a&offset=1&size=1" in links
    assert "There are 4; this page is past the last." in page(BUSY, offset="9").text


@pytest.mark.parametrize("long", [1, 500])
def test_hostile_names_are_text(long: int) -> None:
    """In rules, addresses, entities and the query."""
    bad = HOSTILE * long
    rules = limits(
        rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity(bad, bad): 1.0, QuotaEntity(bad): 1.0})},
        connection_limits={bad: 1.0}
    )  # fmt: skip
    full = usage(user=bad, client_id=bad, broker=bad, of=rules, limit=1.0, usage=2.0)
    shown = page(snapshot(full, limits=rules), q="<")
    assert shown.text.count("<script>alert(1)</script>") >= 4
    shown.assert_runs_nothing()
