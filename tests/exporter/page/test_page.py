from __future__ import annotations

from typing import Any

import pytest
from tests.exporter.examples import NOW, changes, health, in_shadow, limits, snapshot, team, usage
from tests.exporter.nodes import idle as idle_share
from tests.exporter.page.parsed import HOSTILE, Page

from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.page.page import entity_list_page
from quotascope.exporter.page.query import EntityQuery, find_entities
from quotascope.exporter.page.render import PageFrame
from quotascope.exporter.page.teams import Teams
from quotascope.exporter.snapshot import (
    EntityUsage,
    Folds,
    LimitsHealth,
    NodeUsage,
    Shadow,
    Snapshot,
    ThrottleCause,
)
from quotascope.metrics.catalog.teams import UNOWNED
from quotascope.metrics.catalog.thresholds import NEAR_LIMIT
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.baseline import ThrottleChange


def page(
    state: Snapshot,
    cluster: str | None = None,
    teams: Teams = Teams(),  # noqa: B008 - it never changes
    **parameters: str,
) -> Page:
    trails = Trails()
    trails.note(state)
    view = find_entities(state, trails, EntityQuery.read(parameters), teams)
    return Page(entity_list_page(view, PageFrame(cluster=cluster)))


def test_the_legend_says_what_near_is() -> None:
    """The legend has the alert's threshold, which colors, order and filter use."""
    assert f"■ {NEAR_LIMIT.value * 100:.0f} % of the limit and more" in page(snapshot(usage(usage=1.0))).text


def test_all_about_an_entity() -> None:
    """
    The page has usage, limit, part, throttle, level and rule.

    The last minutes are said in words, and drawn with the limit at 80 % of 16 pixels; a bar ends at the limit.
    """
    rules = limits()
    slow = usage(configured=rules, limit=1000.0, usage=1420.0, throttle_time_seconds=2.71)
    rendered = page(snapshot(slow))
    assert "user aliceproduce1142%1.42 kB/s1.00 kB/s2.71 s-3 user alice" in rendered.text
    assert "1 to 1 of 1." in rendered.text
    assert "last 5 minutes: from 142% to 142%, latest 142%" in rendered.values("svg", "aria-label")
    assert rendered.values("line", "y1") == ["3.2"]
    assert "100.0" in rendered.values("rect", "width")


NOTHING = limits(rules={})
"""Known: no one is limited."""
MUTATION = QuotaType.CONTROLLER_MUTATION
CASES = {
    "limited": (
        usage(usage=0.0, limit=500.0, configured=limits()),
        "user aliceproduce10%0.00 B/s500 B/s0 s-3 user alice",
    ),
    "limit of 0": (
        usage(usage=7.0, limit=0.0, configured=limits()),
        "user aliceproduce1999+7.00 B/s0.00 B/s0 s-3 user alice",
    ),
    "unlimited": (usage(usage=7.0, configured=NOTHING), "user aliceproduce1-7.00 B/sunlimited-0 s-no rule"),
    "unknown": (usage(usage=7.0), "user aliceproduce1unknown7.00 B/sunknownunknown0 s-unknown"),
    "no usage": (
        usage(limit=500.0, configured=limits()),
        "user aliceproduce1unknownunknown500 B/sunknown0 s-3 user alice",
    ),
    "mutations": (
        usage(MUTATION, limit=1.0, usage=0.5, tokens=-1.0, burst_tokens=10.0),
        "user alicecontroller mutation150%0.50 mut/s1.00 mut/s0 s110%, -1.00 of 10.0 leftunknown",
    ),
    "unlimited mutations": (
        usage(MUTATION, usage=0.0, configured=NOTHING),
        "user alicecontroller mutation1-0.00 mut/sunlimited-0 s-no rule",
    ),
    "unknown mutations": (
        usage(MUTATION, usage=0.0),
        "user alicecontroller mutation1unknown0.00 mut/sunknownunknown0 sunknownunknown",
    ),
    "delay that is not its own": (
        usage(QuotaType.REQUEST, throttle_time_seconds=1.0, cause=ThrottleCause.CONTROLLER_MUTATION),
        "throttled by a controller mutation quota",
    ),
}
"""A row of the table for each: entity, quota, node, used, usage, limit, trail, throttle, tokens, level and rule."""


@pytest.mark.parametrize(("entity_usage", "text"), CASES.values(), ids=CASES)
def test_unknown_unlimited_and_zero_are_three_things(entity_usage: EntityUsage, text: str) -> None:
    """Unknown and unlimited values are named so, zero is a number, and an inapplicable value is a dash."""
    assert text in page(snapshot(entity_usage), show="all").text


def test_without_limits_known_no_entity_is_hidden() -> None:
    """Without known limits, the usual view shows all entities and does not count those close to a limit."""
    unknown = snapshot(usage(usage=7.0), limits=None)
    assert "1 to 1 of 1." in page(unknown).text
    assert "close to their limit or overunknown" in page(unknown).text
    near = page(unknown, show="near").text
    assert "No entity matches. The limits of 1 entities are unknown" in near
    text_without_rule = page(snapshot(usage(usage=7.0, configured=NOTHING)), show="near").text
    assert "No entity matches." in text_without_rule
    assert "are unknown" not in text_without_rule
    assert "close to their limit or over0" in text_without_rule
    some = snapshot(usage(usage=7.0), usage(usage=9.0, limit=9.0))
    assert "close to their limit or over1 (limits of 1 unknown)" in page(some).text


def test_headers_sort_and_say_so() -> None:
    """A click on a header sorts, another one reverses; other choices stay."""
    rendered = page(snapshot(usage(limit=1.0)), sort="delay", q="ali")
    assert rendered.values("th", "aria-sort") == ["descending"]
    links = rendered.values("a", "href")
    assert "?sort=delay&reverse=1&q=ali" in links
    assert "?sort=name&q=ali" in links
    assert {"?sort=used&q=ali", "?q=ali"} <= set(links)
    assert "api/v1/entities?sort=delay&q=ali" in links
    assert rendered.values("link", "href") == ["-/icon.svg", "-/page.css"]
    turned = page(snapshot(), sort="name", reverse="1")
    assert turned.values("th", "aria-sort") == ["descending"]


def test_form_shows_what_is_chosen() -> None:
    """The form keeps the order, but begins with the first entity again."""
    rendered = page(snapshot(usage(limit=1.0)), q='"><b>', type="fetch", show="all", sort="name", offset="5")
    assert '"><b>' in rendered.values("input", "value")
    assert rendered.values("option", "selected") == ["selected", "selected"]
    names = rendered.values("input", "name")
    assert names == ["sort", "reverse", "size", "q", "broker"]
    assert "b" not in rendered.tags


OWNED = [
    team("payments", user_pattern="pay.*", client_id="app"),
    team("billing", user="payer"),
    team("billing", client_id_pattern="etl|bill-.*"),
]
CROWD = {
    ("payer", "app"): "payments",
    ("payer\nx", "app"): "payments",
    ("payer", "other"): "billing",
    ("Payer", "bill-1"): "billing",
    ("", "etl"): "billing",
    ("xpay", "app"): None,
    ("", "etl-x"): None,
}


def test_the_first_team_that_matches_whole_names() -> None:
    """Teams match as in the rules of the alerts: all parts must hold; other entities have none."""
    teams = Teams(OWNED)
    for (user, client_id), name in CROWD.items():
        assert teams.of(usage(user=user, client_id=client_id).entity) == (name or UNOWNED)
    assert teams.names == ("payments", "billing", UNOWNED)
    assert Teams().of(usage().entity) is None


def test_entities_of_a_team() -> None:
    """Teams have a column, and a choice that links keep; without configured teams there is neither."""
    crowd = [usage(user=u, client_id=c, limit=1.0, usage=1.0) for u, c in CROWD]
    rendered = page(snapshot(*crowd), teams=Teams(OWNED), team="billing", size="2")
    assert "User and client-idTeamQuota" in rendered.text
    assert "1 to 2 of 3." in rendered.text
    assert rendered.text.count("billingproduce1100%") == 2
    assert "?team=billing&offset=2&size=2" in rendered.values("a", "href")
    assert "?sort=name&team=billing&size=2" in rendered.values("a", "href")
    assert rendered.values("option", "value")[-4:] == ["", "payments", "billing", UNOWNED]
    assert rendered.values("option", "selected") == ["selected"] * 3
    every = page(snapshot(*crowd), teams=Teams(OWNED))
    assert "xpay / app-produce1100%" in every.text
    rest = page(snapshot(*crowd), teams=Teams(OWNED), team=UNOWNED)
    assert "1 to 2 of 2." in rest.text
    assert "xpay / app-produce1100%" in rest.text
    plain = page(snapshot(*crowd))
    assert "Team" not in plain.text
    assert plain.values("select", "name") == ["type", "show"]


@pytest.mark.parametrize("teams", [Teams(), Teams(OWNED)])
def test_an_unknown_team_has_nothing(teams: Teams) -> None:
    """An unknown team has no entities, and the form still shows its name."""
    rendered = page(snapshot(usage(limit=1.0)), teams=teams, team="</b>pay\n")
    assert "No entity matches: no team is called </b>pay." in rendered.text
    assert "user aliceproduce1" not in rendered.text
    assert rendered.values("option", "value")[-1] == "</b>pay"


def test_hostile_teams() -> None:
    """Whatever a team is called, its name is text, stays short, and finds its entities."""
    bad = HOSTILE.replace("\ud800", "\u202e") * 500
    teams = Teams([team(bad, user="alice")])
    query, _ = teams.names
    for name in (query, bad):
        rendered = page(snapshot(usage(limit=1.0), usage(user="bob", limit=1.0)), teams=teams, team=name)
        assert "1 to 1 of 1." in rendered.text
        assert rendered.values("option", "value")[-3:] == ["", query, UNOWNED]
        rendered.assert_runs_nothing()


def test_parts_of_a_long_table() -> None:
    """Each part of a long table has links to the previous and the next one."""
    many = snapshot(*(usage(user=f"u{n}", limit=1.0, usage=n / 9) for n in range(5)))
    middle = page(many, size="2", offset="2")
    assert "3 to 4 of 5" in middle.text
    assert {"?size=2", "?offset=4&size=2"} <= set(middle.values("a", "href"))
    behind = page(many, offset="100")
    assert "There are 5; this page is past the last." in behind.text
    assert "No entity matches." in page(many, q="nobody").text


def test_delay_queues_and_sources() -> None:
    """The page shows muted connections by node and type of quota, and the state of the agents."""
    silent = NodeUsage(broker="8")
    muted, idle = (NodeUsage(broker="7", delay_queue_size={QuotaType.FETCH: size}) for size in (3.0, 0.0))
    for nodes, expected in (((muted, silent), "3 (1 of 2 nodes report it)"), ((silent,), "unknown"), ((idle,), "0")):
        assert f"connections muted now{expected}" in page(snapshot(nodes=nodes)).text
    text = page(snapshot(nodes=(muted, silent))).text
    assert "Delay queues" in text
    assert "7unknown3unknownunknown" in text
    assert "broker-1jolokiaup0.250 s12" in text
    assert "broker-1jolokiastand-by0.250 s12" in page(snapshot(sources=(health(stand_by_of="1"),))).text
    states = page(snapshot(sources=(health(dialect="up"), health("up", up=False))))
    assert states.values("span", "class").count("severity") == 1


def test_the_busiest_node_is_named() -> None:
    """The busiest pool of the node counts; where no agent reports idle handlers, that is unknown."""
    busy = NodeUsage(broker="7", numbers=idle_share(broker=0.34))
    idle = NodeUsage(broker="8", numbers=idle_share(0.9))
    for nodes, expected in (
        ((idle, busy), "34% on node 7"),
        ((busy, NodeUsage(broker="9")), "34% on node 7 (1 of 2 nodes report it)"),
        ((NodeUsage(broker="9"),), "unknown"),
    ):
        assert f"request handlers idle{expected}" in page(snapshot(nodes=nodes)).text


def test_shadows() -> None:
    """The page shows each shadow with the entity nearest to its limit; unknown is no zero, and names are text."""
    busy = Shadow(
        name=HOSTILE,
        entities=(
            in_shadow(usage(user=HOSTILE, limit=10.0, usage=20.0, throttle_time_seconds=11.0), ThrottleChange.NEW),
        ),
        evaluated={(QuotaType.PRODUCE, "1"): 8},
        changes={(QuotaType.PRODUCE, "1"): changes(new=3, longer=1, shorter=4, ended=6, unchanged=5)},
        unevaluated={(QuotaType.FETCH, "1", "finer"): 2}
    )  # fmt: skip
    dark = Shadow(name="dark", unevaluated={(QuotaType.PRODUCE, "1", "finer"): 5})
    held = in_shadow(usage(limit=10.0, usage=4.0, throttle_time_seconds=None), ThrottleChange.SHORTER, held_back=True)
    looser = Shadow(name="looser", entities=(held,), changes={(QuotaType.PRODUCE, "1"): changes(shorter=1)})
    rendered = page(snapshot(shadows=(busy, dark, looser)))
    assert "Shadows" in rendered.headings
    assert "3146582" in rendered.text
    assert "11.0 s" in rendered.text
    assert f"dark{'unknown' * 6}5--" in rendered.text
    assert "user alice, produce\u2265 40%" in rendered.text
    assert "held back now" in rendered.text
    assert "script" not in {tag for tag, names in rendered.elements if not names}
    assert "Shadows" not in page(snapshot()).headings


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"limits_health": LimitsHealth(read_at=NOW - 25)}, "09:03:00 UTC; quotas were read 25 s before."),
        ({"limits_health": LimitsHealth(read_at=NOW + 0.1)}, "09:03:00 UTC; quotas were read 0 s before."),
        ({"limits": None, "limits_health": LimitsHealth()}, "09:03:00 UTC."),
    ],
)
def test_the_age_of_the_quotas_is_shown(changes: dict[str, Any], text: str) -> None:
    """A change of a quota is applied by brokers at once, and seen here when quotas are read again."""
    assert text in page(snapshot(usage(usage=1.0), **changes)).text


def test_what_is_not_shown_one_by_one() -> None:
    """Entities that are not shown one by one are counted with the reason."""
    left_out = snapshot(left_out=(usage(limit=1.0),), folds=Folds(overflow=1))
    text = page(left_out).text
    assert "1 to 1 of 1" in text
    assert "Not among the metrics one by one: 1 folded." in text


def test_what_is_wrong_is_reported_with_what_to_do() -> None:
    """Findings are shown on the page with what to do."""
    wrong = snapshot(
        sources=(health(up=False, error="refused"),), limits=None, limits_health=LimitsHealth(configured=False)
    )
    rendered = page(wrong, "prod")
    assert "quotascope: prod" in rendered.text
    assert "error: Source 'broker-1' (jolokia) cannot be read: refused" in rendered.text
    assert "Set kafka.bootstrap_servers" in rendered.text


@pytest.mark.parametrize("long", [1, 500])
def test_hostile_text_is_text(long: int) -> None:
    """Names, error texts and links from outside are shown, not run, wherever they stand."""
    bad = HOSTILE * long
    rules = limits(connection_limits={bad: 1.0})
    rendered = page(
        snapshot(
            usage(user=bad, client_id=bad, broker=bad, limit=1.0, configured=rules),
            limits=rules,
            sources=(health(bad, up=False, error=bad, dialect=bad),),
            nodes=(NodeUsage(broker=bad, delay_queue_size={QuotaType.FETCH: 1.0}),),
        ),
        bad,
        q="<",
    )
    assert rendered.text.count("<script>alert(1)</script>") >= 6
    rendered.assert_runs_nothing()
    page(snapshot(usage(limit=1.0)), q=bad, broker=bad).assert_runs_nothing()


def test_a_page_stays_small() -> None:
    """A page stays small, however many entities, sources, nodes and limits there are."""
    crowd = [usage(user=f"u{n}", limit=1.0, usage=1.0) for n in range(3_000)]
    names = [f"10.0.{n >> 8}.{n & 255}" for n in range(3_000)]
    many = snapshot(
        *crowd,
        limits=limits(connection_limits=dict.fromkeys(names, 1.0)),
        sources=tuple(health(name) for name in names),
        nodes=tuple(NodeUsage(broker=name, delay_queue_size={QuotaType.FETCH: 1.0}) for name in names),
    )
    rendered = page(many)
    assert rendered.tags.count("tr") < 700
    assert "Agents of nodes: 3000; the first 200" in rendered.text
    assert "1 to 50 of 3000" in rendered.text


def test_unknown_throttle_times_are_counted() -> None:
    """
    Entities whose throttle time is unknown are counted beside "throttled lately".

    Delays of mutations are those of requests.
    """
    mutations = usage(QuotaType.CONTROLLER_MUTATION, usage=1.0, throttle_time_seconds=None)
    blind = usage(user="bob", usage=1.0, throttle_time_seconds=None)
    assert "clients throttled lately0close" in page(snapshot(mutations)).text
    text = page(snapshot(mutations, blind, usage(usage=1.0)), show="all").text
    assert "clients throttled lately0 (throttle times of 1 unknown)close" in text
    assert text.count("unknown") > text.count("throttle times of 1 unknown")


def test_nothing_is_counted_where_no_source_is_read() -> None:
    """Entities, throttles and the entities of rules are unknown then, and not zero."""
    text = page(snapshot(nodes=(), sources=(health(up=False, error="refused"),))).text
    assert "nodesunknownquota entitiesunknownclients throttled latelyunknownclose to their limit or overunknown" in text
    assert "rules without an entityunknown" in text
    assert "No source is read: the entities are unknown." in text
    assert "No entity matches." in page(snapshot()).text
