"""The page of one entity."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.exporter.examples import NOW, health, limits, snapshot, usage
from tests.exporter.page.parsed import HOSTILE, Page

from quotascope.alerts.links import Dashboard
from quotascope.alerts.runbook import runbooks
from quotascope.exporter.diagnosis.episodes import Episodes
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.page.entity import asked_entity, entity_page, find_entity
from quotascope.exporter.page.render import PageFrame, entity_address
from quotascope.exporter.snapshot import NodeUsage, Snapshot
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules


def page(
    *states: Snapshot,
    user: str | None,
    client_id: str | None = None,
    frame: PageFrame = PageFrame(),  # noqa: B008 - it never changes
) -> Page:
    trails, episodes = Trails(), Episodes()
    for state in states:
        trails.note(state)
        episodes.note(state)
    result = find_entity(states[-1], trails, episodes, user, client_id)
    return Page(entity_page(result, frame))


def test_the_rule_that_applies_and_those_that_it_overrules() -> None:
    """The rules are shown as by `quotascope explain`, also for a client that no quota names."""
    rendered = page(snapshot(), user="alice", client_id="app")
    assert "produce: 3 user alice applies, 1,000 B/s; without it: 6 user <default>, 500 B/s" in rendered.text
    assert "3 user alice1,000 applies---" in rendered.text
    assert "6 user <default>500 overruled---" in rendered.text
    assert "1 alice / app--50 applies-" in rendered.text
    anyone = page(snapshot(), user=None)
    assert "any user that no quota names, any client-id that no quota names" in anyone.text
    assert "6 user <default>500 applies---" in anyone.text
    assert "any-other" not in anyone.text
    assert anyone.headings[0] == "clients that no quota names"
    assert page(snapshot(), user=None, client_id="").headings[0] == "clients without a client-id"
    unread = page(snapshot(limits=None), user="alice")
    assert "unknown: the configured quotas cannot be read." in unread.text


def test_usage_on_the_cluster() -> None:
    """The page has a sum of all brokers' usage and limits above their rows."""
    rows = (
        usage(usage=600.0, limit=1000.0, configured=limits()),
        usage(usage=200.0, limit=1000.0, broker="2", configured=limits()),
    )
    two = limits(nodes={broker: NodeSettings() for broker in "12"})
    nodes = (NodeUsage(broker="1"), NodeUsage(broker="2"))
    rendered = page(snapshot(*rows, limits=two, nodes=nodes), user="alice")
    assert "produce, user alice: cluster 800 B/s of at most 2.00 kB/s; broker 1 has 75% of it" in rendered.text


def test_callbacks_overrule_the_rules() -> None:
    """The node is named, and its class as text."""
    custom = limits(nodes={"1": NodeSettings(quota_callback_class=HOSTILE)})
    rendered = page(snapshot(limits=custom), user="alice")
    assert "Node 1 leaves quotas to <script>" in rendered.text
    assert "produce: unknown; a custom quota callback sets it on every node" in rendered.text


RULES = limits(
    rules={
        QuotaType.PRODUCE: QuotaRules({QuotaEntity("alice", DEFAULT): 1.0}),
        QuotaType.FETCH: QuotaRules({QuotaEntity("alice", None): 1.0}),
        QuotaType.REQUEST: QuotaRules({QuotaEntity(None, DEFAULT): 1.0}),
    }
)
ROWS = (
    usage(configured=RULES, client_id="app"),
    usage(configured=RULES, client_id="app", broker="2"),
    usage(configured=RULES, client_id="other"),
    usage(QuotaType.FETCH, configured=RULES),
    usage(QuotaType.REQUEST, "", "app", configured=RULES),
    usage(QuotaType.REQUEST, "", "other", configured=RULES),
    usage(user="bob", client_id="app", configured=RULES),
)


@pytest.mark.parametrize(
    ("user", "client_id", "rows"),
    [
        ("alice", "app", [0, 1, 3, 4]),
        ("alice", None, [0, 1, 2, 3]),
        ("alice", "", [3]),
        (None, "app", [4]),
        ("bob", "app", [4, 6]),
        ("User:alice", "", [3]),
        (None, None, []),
        ("nobody", None, []),
    ],
)
def test_what_is_measured_of_it(user: str | None, client_id: str | None, rows: list[int]) -> None:
    """A client has a row for each quota type, of itself, its user or its client-id; a user has one for each client."""
    entity_result = find_entity(snapshot(*ROWS, limits=RULES), Trails(), Episodes(), user, client_id)
    entities = [entity_usage.entity for entity_usage in entity_result.rows]
    assert len(entities) == len(rows)
    assert all(ROWS[row].entity in entities for row in rows)


def test_the_last_minutes_and_the_episodes() -> None:
    """The last minutes are drawn and said in words; an episode has its times, its length, and the rule."""
    configured = limits()
    start = NOW - NOW % 15
    numbers = [(0.5, 0.0), (1.25, 0.5), (1.0, 2.0), (0.25, 0.0)]
    seen = [
        replace(
            snapshot(usage(configured=configured, limit=1000.0, usage=1000 * used, throttle_time_seconds=slow)),
            taken_at=start + 15 * step
        )
        for step, (used, slow) in enumerate(numbers)
    ]  # fmt: skip
    rendered = page(*seen, user="alice")
    (words,) = rendered.values("svg", "aria-label")
    assert words == "highest utilization in 15 s: from 25% to 125%, latest 25%; throttled in 2 of 4 steps"
    assert "produce, node 1: user alice11-21 09:03:15ongoing15 s2.00 s3 user alice" in rendered.text
    colors = [v for tag, name, v in rendered.attributes if (tag, name) == ("rect", "class")]
    assert colors.count("over") == 2 + 2 + 0
    later = replace(seen[-1], taken_at=start + 120)
    assert "11-21 09:03:1511-21 09:03:3015 s2.00 s3 user alice" in page(*seen, later, user="alice").text
    free = snapshot(usage(configured=limits(rules={}), usage=2e6))
    (words,) = page(free, user="alice").values("svg", "aria-label")
    assert words == "highest usage in 15 s: from 2.00 MB/s to 2.00 MB/s, latest 2.00 MB/s; not throttled"
    nothing = page(snapshot(), user="alice").text
    assert "It is not measured now." in nothing
    unread = snapshot(nodes=(), sources=(health(up=False),))
    unknown = page(unread, replace(unread, taken_at=unread.taken_at + 60), user="carol").text
    assert "unknown: no source is read." in unknown
    assert "None seen since the exporter started.For 1 min of this time not all" in unknown
    assert "None seen since the exporter started." in nothing
    assert "not all" not in nothing


def test_a_throttled_client_below_its_limit_is_red() -> None:
    """A throttled client below its limit has a red row until it is free, and red steps in the chart."""
    start, configured = NOW - NOW % 15, limits()
    steps = [
        replace(
            snapshot(usage(configured=configured, limit=1000.0, usage=950.0, throttle_time_seconds=slow)),
            taken_at=start + 15 * step,
        )
        for step, slow in enumerate((0.0, 0.2, 0.2))
    ]

    def colors(*seen: Snapshot) -> tuple[int, int]:
        rects = [v for tag, name, v in page(*seen, user="alice").attributes if (tag, name) == ("rect", "class")]
        return rects.count("near"), rects.count("over")

    strip = 2
    assert colors(*steps) == (1, 2 + strip + 1)
    free = replace(steps[0], taken_at=start + 45)
    assert colors(*steps, free) == (2 + 1, 2 + strip)


def test_the_last_minutes_have_a_full_bar_above_a_limit_of_zero() -> None:
    """The last minutes under a limit of zero have full bars, beside those under an earlier limit."""
    start, configured = NOW - NOW % 15, limits()
    seen = [
        replace(snapshot(usage(configured=configured, limit=limit, usage=500.0)), taken_at=start + 15 * step)
        for step, limit in enumerate((1000.0, 0.0))
    ]
    rendered = page(*seen, user="alice")
    (words,) = rendered.values("svg", "aria-label")
    assert words == "highest utilization in 15 s: from 50% to 999+, latest 999+; not throttled"
    colors = [v for tag, name, v in rendered.attributes if (tag, name) == ("rect", "class")]
    assert (colors.count("fine"), colors.count("over")) == (1, 1 + 1)  # the last step, and the row


def test_the_board_in_grafana() -> None:
    """The link has the dashboard and variables of the alerts; names are quoted."""
    frame = PageFrame(cluster="prod eu", grafana_url="https://grafana.corp/x/")
    rendered = page(snapshot(), user='a&"b', frame=frame)
    (board,) = [link for link in rendered.values("a", "href") if "grafana" in link]
    parts = urlsplit(board)
    assert parts.path == f"/x/d/{Dashboard.ENTITY.uid}"
    names = [f"var-{name}" for name in Dashboard.ENTITY.variables]
    assert parse_qs(parts.query, keep_blank_values=True) == dict(zip(names, [["prod eu"], ['a&"b'], [""]], strict=True))
    plain = page(snapshot(), user="alice")
    assert not [link for link in plain.values("a", "href") if "grafana" in link]


def test_the_usage_stands_before_the_rules() -> None:
    """The page shows the usage first, and then the eight levels of rules."""
    rendered = page(snapshot(usage(configured=limits())), user="alice")
    assert rendered.headings[1:] == ["Now", "Which quota applies", "Last 15 minutes", "Throttle episodes"]


def test_the_runbook_of_a_state() -> None:
    """A throttled or nearly throttled entity links to its runbook, with its names; others have no link."""
    configured = limits()
    rows = (
        usage(configured=configured, limit=1000.0, usage=950.0, throttle_time_seconds=0.2, client_id="a&b"),
        usage(QuotaType.FETCH, configured=configured, limit=1000.0, usage=950.0, client_id="a&b"),
        usage(QuotaType.REQUEST, configured=configured, limit=50.0, usage=1.0, client_id="a&b"),
    )
    served = PageFrame(runbooks=True)
    rendered = page(snapshot(*rows), user="alice", client_id="a&b", frame=served)
    links = [urlsplit(link) for link in rendered.values("a", "href") if link.startswith("runbooks/K")]
    assert [link.path.removeprefix("runbooks/") for link in links] == [
        "KafkaQuotaNearLimit",
        "KafkaQuotaClientThrottled",
    ]
    assert {link.path.removeprefix("runbooks/") for link in links} <= set(dict(runbooks()))
    assert all(parse_qs(link.query) == {"user": ["alice"], "client_id": ["a&b"]} for link in links)
    assert "fetch, near its limit: what to do" in rendered.text
    assert "produce, throttled: what to do" in rendered.text
    assert "what to do" not in page(snapshot(*rows), user="alice", client_id="a&b").text
    assert "what to do" not in page(snapshot(rows[2]), user="alice", client_id="a&b", frame=served).text


@pytest.mark.parametrize("long", [1, 500])
def test_hostile_names_are_text(long: int) -> None:
    """Hostile names are text wherever they stand, whether they are measured or only requested."""
    bad = HOSTILE * long
    rules = limits(rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity(bad, bad): 1.0})})
    slow = usage(user=bad, client_id=bad, broker=bad, configured=rules, limit=1.0, usage=2.0, throttle_time_seconds=1.0)
    measured = snapshot(slow, limits=rules, nodes=(NodeUsage(broker=bad),))
    for rendered in (
        page(measured, user=bad, client_id=bad, frame=PageFrame(cluster=bad, grafana_url="https://g")),
        page(snapshot(), user=bad, client_id=""),
        page(snapshot(limits=None), user=None, client_id=bad),
    ):
        assert "<script>alert(1)</script>" in rendered.text
        rendered.assert_runs_nothing(longest=40_000)


def test_addresses_of_entities() -> None:
    """The address of an entity leads back to its names, unless they are too long for one."""
    for user, client_id in (("a&b=c/ü\n", "x"), ("a", ""), ("", "x")):
        parameters = {
            key: values[0] for key, values in parse_qs(urlsplit(entity_address(user, client_id)).query).items()
        }
        assert asked_entity(parameters) == (user or None, client_id or None)
    assert entity_address("", "") == "entity?client_id="
    assert asked_entity({"client_id": ""}) == (None, "")
    assert entity_address("x" * 10_000, "") == ""
