"""`quotascope quotas`: tables and documents that no recorded story has, and an exporter of another cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import ThreadingHTTPServer
from math import inf
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.usages import rendered, usage_of
from tests.exporter.examples import NOW, limits, snapshot, team, usage
from tests.exporter.limits.scripted import ScriptedAdmin, quota
from tests.servers import Handler, served

from quotascope.cli.fitted import Names
from quotascope.cli.quotas import change_view
from quotascope.cli.quotas.change_view import Affected, view
from quotascope.cli.quotas.list_view import as_json, as_table
from quotascope.exporter.api.answers import snapshot_document
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.diagnosis.impact import Impact, IpImpact
from quotascope.exporter.diagnosis.rule_usage import IpUsage, RuleUsage
from quotascope.exporter.names import known_as
from quotascope.exporter.snapshot import EntityUsage, LimitsHealth
from quotascope.metrics.catalog.thresholds import NEAR_LIMIT
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, QuotaEntity, QuotaType, Resolution
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.pages.baseline import HELD_BACK
from quotascope.quotas import Entity, IpEntity, QuotaSet, difference
from quotascope.quotas.team_finder import TeamFinder

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
    """An address under a rule is shown once, with the fullest of its brokers."""
    text = rendered(as_table([RULE], NEAR_LIMIT.value), 90)
    assert " ".join(text.splitlines()[1].split()).endswith("ip <default> connect 10.0 conn/s ██████░ 90% 10.0.0.1")

    rule = RuleUsage(entity=QuotaEntity("alice", "app1"), key="producer_byte_rate", value=1e6, hits=())
    row = rendered(as_table([rule, RULE], NEAR_LIMIT.value), 80).splitlines()[1]
    assert row.startswith("1 alice / app1"), "on a narrow terminal the names under a rule are cut first"


def test_teams_under_a_rule() -> None:
    """Each team under a rule is listed once, as is usage without a team; addresses have no team."""
    hits = [usage_of("alice"), usage(broker="2", usage=1.0), usage_of("bob")]
    rule = RuleUsage(entity=QuotaEntity(DEFAULT), key="producer_byte_rate", value=1e6, hits=hits)
    teams = TeamFinder((team("pay", user="alice"),))
    head, row, address = rendered(as_table([rule, RULE], NEAR_LIMIT.value, teams), 140).splitlines()[:3]
    assert head.rstrip().endswith("teams")
    assert row.rstrip().endswith("pay, no team")
    assert address.rstrip().endswith("-")
    of_rule, of_address = as_json([rule, RULE], teams=teams)
    assert [hit["team"] for hit in of_rule["hits"]] == ["pay", "pay", "__unowned__"]  # type: ignore[attr-defined]
    assert "team" not in of_address["hits"][0]  # type: ignore[index]
    assert "teams" not in rendered(as_table([rule], NEAR_LIMIT.value), 140)


def cells_under(hits: Sequence[EntityUsage], teams: TeamFinder) -> list[str]:
    """Return names and teams under a rule, in a table with room for them."""
    rule = RuleUsage(entity=QuotaEntity(DEFAULT), key="producer_byte_rate", value=1e6, hits=hits)
    row = rendered(as_table([rule], NEAR_LIMIT.value, teams), 60_000).splitlines()[1]
    return [cell for cell in re.split(r" {2,}", row.rstrip()) if cell][-2:]


def test_entities_on_many_brokers_hide_no_other() -> None:
    """Names and teams count once, however many brokers measure their entities."""
    hits = [usage(user=user, broker=str(broker), usage=1.0) for user in ("anna", "ben", "carl") for broker in range(70)]
    teams = TeamFinder((team("red", user="anna"), team("blue", user="carl")))
    names, of_teams = cells_under(hits, teams)
    assert names.endswith("user anna, user ben, user carl")
    assert of_teams == "red, no team, blue"


def test_an_address_is_reported_to_programs_by_broker() -> None:
    """A rule for addresses has no level in JSON, and its hits are listed by broker."""
    (rule,) = as_json([RULE])
    assert (rule["level"], rule["used"]) == (None, 0.9)
    assert rule["hits"] == [
        {"broker": "1", "ip": "10.0.0.1", "usage": 9.0, "utilization": 0.9},
        {"broker": "2", "ip": "10.0.0.1", "usage": None, "utilization": None},
    ]


CHANGES = difference(QuotaSet(), QuotaSet({IpEntity(DEFAULT): {KEY: 10.0}}))


def address(last: int, **known: Any) -> IpImpact:
    return IpImpact(ip=f"10.0.0.{last}", **{"usage": None, "old_limit": None, "new_limit": None, **known})


@pytest.mark.parametrize(
    ("impact", "row"),
    [
        (address(1, usage=12.0, old_limit=inf, new_limit=10.0), "12.0 conn/s unlimited 10.0 conn/s 120%"),
        (address(1, new_limit=10.0), "? ? 10.0 conn/s ?"),
        (address(1, usage=0.0, old_limit=20.0, new_limit=inf), "0.00 conn/s 20.0 conn/s unlimited -"),
        (address(1, usage=7.0, old_limit=5.0), "7.00 conn/s 5.00 conn/s ? ?"),
        (address(1, old_limit=inf, new_limit=inf), "? unlimited unlimited -"),
    ],
)
def test_an_affected_address_is_shown_with_its_limits(impact: IpImpact, row: str) -> None:
    """An address has its limits, and unknown figures are shown as such."""
    lines = rendered(view(CHANGES, Affected([], [impact]), 9), 90).splitlines()
    assert f"ip 10.0.0.1 connect {row}" in [" ".join(line.split()) for line in lines]


def test_limits_of_the_affected_for_programs() -> None:
    """The document distinguishes unlimited and unknown by a state, since JSON has no infinity. Names are unchanged."""
    rule = QuotaEntity('a\n"\x1b')
    client = Impact(
        quota_type=QuotaType.REQUEST,
        user='a\n"\x1b',
        client_id="",
        usage=0.5,
        old_rule=NO_RULE,
        new_rule=Resolution(level=rule.level, entity=rule, bound=25.0),
        window_restarts=True,
    )
    addresses = [address(1, usage=12.0, old_limit=inf, new_limit=10.0), address(2, new_limit=inf)]
    affected = Affected([client, replace(client, usage=None, new_rule=None)], addresses)
    document = change_view.as_json(CHANGES, affected, 9)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    rows = document["affected"]
    assert isinstance(rows, list)
    keys = ("limit", "limit_state", "new_limit", "new_limit_state", "new_utilization")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        (None, "unlimited", 0.25, "limited", 2.0),
        (None, "unlimited", None, "unknown", None),
        (None, "unlimited", 10.0, "limited", 1.2),
        (None, "unknown", None, "unlimited", None),
    ]
    assert (rows[0]["user"], rows[0]["new_rule"]) == ('a\n"\x1b', rule.rule)
    cut = change_view.as_json(CHANGES, affected, 1)
    assert (cut["affected_total"], cut["affected"]) == (4, rows[:1])


def test_what_is_held_back_is_a_bound() -> None:
    """The usage of a throttled client, or of an address at its limit, is a lower bound under a raised limit."""
    rule = QuotaEntity("alice")
    client = Impact(
        quota_type=QuotaType.PRODUCE,
        user="alice",
        client_id="",
        usage=1000.0,
        old_rule=Resolution(level=rule.level, entity=rule, bound=1000.0),
        new_rule=Resolution(level=rule.level, entity=rule, bound=2500.0),
        window_restarts=False,
        held_back=True,
    )
    addresses = [IpImpact(ip="10.0.0.1", usage=used, old_limit=10.0, new_limit=20.0) for used in (10.0, 9.0)]
    text = " ".join(rendered(view(CHANGES, Affected([client], addresses), 9), 160).split())
    assert "1.00 kB/s 2.50 kB/s ≥ 40%, held back now 3 user alice" in text
    assert "10.0 conn/s 20.0 conn/s ≥ 50%, held back now" in text
    assert "20.0 conn/s 45%" in text
    assert HELD_BACK in text
    rows = change_view.as_json(CHANGES, Affected([client], addresses), 9)["affected"]
    assert isinstance(rows, list)
    assert [(row["held_back"], row["new_utilization"]) for row in rows] == [(True, 0.4), (True, 0.5), (False, 0.45)]
    free = rendered(view(CHANGES, Affected([replace(client, held_back=False)], addresses[1:]), 9), 160)
    assert "held back" not in free


def test_of_brokers_that_cannot_be_read_nothing_is_known() -> None:
    """With unread brokers, an empty list of affected clients is unknown, and others may lack clients."""
    nothing, some = Affected([], [], incomplete=True), Affected([], [address(1, usage=12.0)], incomplete=True)
    assert "clients are unknown: not all clients could be read" in rendered(view(CHANGES, nothing, 9), 90)
    assert "and maybe more: not all clients could be read" in rendered(view(CHANGES, some, 9), 90)
    documents = [change_view.as_json(CHANGES, affected, 9) for affected in (nothing, some)]
    assert [document["affected_total"] for document in documents] == [None, 1]


def test_parts_of_a_sum_have_rules_of_their_own() -> None:
    """Sums of a user fall into client-ids, and sums of a client-id into users; an infinite limit is none."""
    endless = Resolution(level=QuotaEntity("a").level, entity=QuotaEntity("a"), bound=inf)
    sums = [
        Impact(
            quota_type=QuotaType.REQUEST,
            user=u,
            client_id=c,
            usage=0.5,
            old_rule=r,
            new_rule=None,
            window_restarts=True,
        )
        for u, c, r in (("a", "", endless), ("", "c", NO_RULE))
    ]
    client = replace(sums[0], new_rule=endless, window_restarts=False)
    small = replace(client, usage=0.00525, new_rule=replace(endless, bound=0.5))
    text = rendered(view(CHANGES, Affected([*sums, client, small], []), 9), 110)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "user a * request 50.0 % unlimited ? ? that of each client-id or pair" in lines
    assert "client-id c * request 50.0 % unlimited ? ? that of each user or pair" in lines
    assert "user a request 50.0 % unlimited unlimited - 3 user a" in lines
    assert "user a request 0.53 % unlimited 0.50 % 105% 3 user a" in lines


def test_no_one_and_too_many_are_reported() -> None:
    """The table says that no client is affected, or how many it leaves out."""
    assert "no client that brokers measure separately now is affected" in rendered(
        view(CHANGES, Affected([], []), 9), 90
    )
    cut = rendered(view(CHANGES, Affected([], [address(1, usage=12.0, new_limit=10.0)] * 2), 0), 90)
    assert "and 2 more: --top shows more" in cut
    assert "10.0.0.1" not in cut


def listed(rule: RuleUsage) -> str:
    row = rendered(as_table([rule], NEAR_LIMIT.value), 150).splitlines()[1]
    return " ".join(row.replace("░", "").split())


CLIENT = QuotaEntity(None, "app")


def of_client(**known: Any) -> RuleUsage:
    return RuleUsage(entity=CLIENT, key="producer_byte_rate", value=1e3, **known)


@pytest.mark.parametrize(
    ("rule", "used", "hits", "row"),
    [
        (of_client(hits=None), None, None, "? unknown"),
        (of_client(), None, 0, "- none"),
        (of_client(hits=(usage_of(usage=None),)), None, 1, "? alice / app"),
        (of_client(hits=(usage_of(usage=0.0),)), 0.0, 1, "0% alice / app"),
        (of_client(overruled_by=QuotaEntity(DEFAULT, DEFAULT)), None, 0, "- overruled by 5 <default> / <default>"),
    ],
    ids=["unknown", "none", "unknown use", "zero", "overruled"],
)
def test_unknown_none_and_zero(rule: RuleUsage, used: float | None, hits: int | None, row: str) -> None:
    """The table has the clients under a rule, and its utilization: text and JSON distinguish unknown from none."""
    assert listed(rule) == f"7 client-id app produce 1.00 kB/s {row}"
    endless = replace(rule, value=inf)
    assert listed(endless) == f"7 client-id app produce unlimited {row.replace('?', '-')}"
    (document,) = as_json([rule])
    assert document["used"] == used
    of_rule = document["hits"]
    assert (of_rule if of_rule is None else len(list(of_rule))) == hits  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (29, ["alice, bob (not visible on 2)"]),
        (28, ["alice, … (not visible on 2)"]),
        (20, ["alice, bob", "(not visible on 2)"]),
        (9, ["alice, …", "(not", "visible", "on 2)"]),
    ],
)
def test_nodes_that_are_not_visible_are_named_before_names(width: int, lines: list[str]) -> None:
    """A narrow cell leaves out names before it leaves out the nodes on which others may be."""
    text = rendered(Names(["alice", "bob"], behind="(not visible on 2)"), width)
    assert [line.rstrip() for line in text.splitlines()] == lines


@pytest.mark.parametrize("width", [70, 80, 100, 130, 200])
def test_a_rule_names_the_nodes_that_it_does_not_see(width: int) -> None:
    """In a terminal of any width, the row of a rule has the nodes on which its clients are not visible."""
    hits = tuple(usage_of(f"user-{number}") for number in range(5))
    words = rendered(as_table([of_client(hits=hits, hidden_on=("2",))], NEAR_LIMIT.value), width).split()
    assert "(not visible on 2)" in " ".join(word for word in words if word in {"(not", "visible", "on", "2)"})


@pytest.mark.parametrize("name", ["team[prod]", "x[/y]"])
def test_markup_in_a_rule_is_text(name: str) -> None:
    """Markup in a rule is printed as text."""
    rule = RuleUsage(entity=QuotaEntity(name), key="producer_byte_rate", value=1e3, hits=())
    assert f"3 user {name} produce" in listed(rule)


OURS = ScriptedAdmin().describe_cluster().cluster_id


@pytest.fixture(params=[OURS, "\x1b[2Jeast", None])
def cluster_id(request: pytest.FixtureRequest) -> str | None:
    """Return the exporter's cluster id: the same, another one, and None for a release that does not report it."""
    exporter_id: str | None = request.param
    return exporter_id


@pytest.fixture
def exporter(cluster_id: str | None) -> Iterator[str]:
    """The address of an exporter that reads this cluster."""
    state = snapshot(usage(usage=1.0), limits_health=LimitsHealth(read_at=NOW, cluster_id=cluster_id))

    class Api(Handler):
        def do_GET(self) -> None:  # noqa: N802 - its name there
            self.answer(200, encoded(snapshot_document(state)))

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Api)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize("command", [("list",), ("set", "request_percentage=1", "--user", "alice")])
def test_another_cluster_is_refused(
    exporter: str, cluster_id: str | None, command: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another cluster is refused with both ids where they are known, and nothing is shown."""
    monkeypatch.setattr("quotascope.cli.compose.admin_of", lambda _: ScriptedAdmin())
    code, out, err = run("quotas", *command, "--exporter", exporter, "--bootstrap-servers", "a:1")
    if cluster_id in {OURS, None}:
        assert (code, err) == (0, "")
    else:
        assert (code, out) == (1, "")
        assert "reads the Kafka cluster \\x1b[2Jeast, and the bootstrap servers are of x:" in " ".join(err.split())


def test_names_that_stand_for_longer_ones_are_not_exported(run: Run) -> None:
    """An exporter does not report the whole name, and the rule would apply to no client."""
    rules = QuotaRules({QuotaEntity(known_as("n" * 3_000)): 5.0, QuotaEntity("bob"): 5.0})
    snapshot_of_rules = snapshot(usage(usage=1.0), limits=limits(rules={QuotaType.PRODUCE: rules}))

    class Api(Handler):
        def do_GET(self) -> None:  # noqa: N802 - its name there
            self.answer(200, encoded(snapshot_document(snapshot_of_rules)))

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Api)) as server:
        code, out, err = run("quotas", "export", "--exporter", f"http://127.0.0.1:{server.server_port}")
    assert (code, out) == (1, "")
    words = " ".join(err.split())
    assert "stands for a longer name, which the exporter does not report: give --bootstrap-servers instead" in words
    assert "bob" not in words


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("remove", "producer_byte_rate"), 0, "nothing was changed: pass --apply"),
        (("set", "producer_byte_rate=5"), 0, "nothing was changed: pass --apply"),
        (("set", "request_percentage=5"), 0, "nothing was changed: pass --apply"),
    ],
)
def test_a_long_name_may_be_given_as_it_is_shown(
    command: tuple[str, ...], code: int, words: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut name stands for the rule with the full name; without such a rule it is refused."""
    name, long_name = "n" * 3_000, known_as("m" * 3_000)
    admin = ScriptedAdmin()
    admin.quotas = (quota(1.0, user=name),)
    monkeypatch.setattr("quotascope.cli.compose.admin_of", lambda _: admin)
    options = ("--bootstrap-servers", "a:1")
    plan = json.loads(run("quotas", *command, "--user", known_as(name), "--json", *options)[1])
    assert [change["entity"] for change in plan["changes"]] == [{"user": name}]
    exit_code, out, _ = run("quotas", *command, "--user", known_as(name), *options)
    assert (exit_code, words in out) == (code, True)
    refused, _, err = run("quotas", *command, "--user", long_name, *options)
    assert refused == 1
    assert "no 'producer_byte_rate'" in err if command[0] == "remove" else "stands for a longer name" in err


def test_a_quota_that_would_apply_to_no_client_is_said_before_it_is_set() -> None:
    """
    A quota that would apply to no client is reported with the rule that decides instead, before it is set.

    A quota that applies, or that is removed, is not.
    """
    old = QuotaSet(
        {
            QuotaEntity(DEFAULT, DEFAULT): {"producer_byte_rate": 1e6},
            QuotaEntity(None, "old"): {"producer_byte_rate": 5e5},
        }
    )
    set_: dict[Entity, dict[str, float]] = {
        QuotaEntity(None, "app"): {"producer_byte_rate": 1e5, "request_percentage": 5.0},
        QuotaEntity("alice"): {"producer_byte_rate": 1e5},
    }
    new = QuotaSet({QuotaEntity(DEFAULT, DEFAULT): {"producer_byte_rate": 1e6}, **set_})
    changes = difference(old, new)
    overruled = change_view.overruled_changes(changes, new)
    assert list(change_view.overruled_lines(overruled)) == [
        (
            "! producer_byte_rate of 7 client-id app would apply to no client: overruled by 5 <default> / <default> "
            "for every client that sends a client-id"
        )
    ]
    rows = change_view.changes_json(changes, {}, (), overruled)
    rules_by_client = {
        (row["entity"].get("client-id"), row["key"]): row["overruled_by"]  # type: ignore[attr-defined]
        for row in rows
    }
    assert rules_by_client["app", "producer_byte_rate"] == "5 <default> / <default>"
    assert [rule for rule in rules_by_client.values() if rule is not None] == ["5 <default> / <default>"]
