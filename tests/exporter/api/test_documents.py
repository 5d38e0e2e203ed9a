import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.exporter.examples import NOW, health, limits, snapshot, usage

from quotascope.exporter.api import documents
from quotascope.exporter.api.documents import (
    encoded,
    entities_document,
    episodes_document,
    explain_document,
    health_document,
    rules_document,
    runbooks_document,
    snapshot_document,
)
from quotascope.exporter.api.openapi import ANSWERS, openapi
from quotascope.exporter.config import OwnerConfig
from quotascope.exporter.diagnosis.episodes import Episodes
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.errors import InvalidQuery
from quotascope.exporter.limits import Limits
from quotascope.exporter.page.entity import find_entity
from quotascope.exporter.page.owners import Owners
from quotascope.exporter.page.query import EntityQuery, EpisodeQuery, find_entities
from quotascope.exporter.page.rules import RuleQuery, find_rules
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Snapshot
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType

OWNERS = Owners([OwnerConfig(team="billing\n", client_id="app")])


def answer(shown: Snapshot, **given: str) -> dict[str, Any]:
    trails = Trails()
    trails.note(shown)
    return parsed(entities_document(find_entities(shown, trails, EntityQuery.read(given), OWNERS)))


def parsed(document: object) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(encoded(document))
    return read


ALICE = {
    "broker": "1",
    "quota_type": "produce",
    "user": "alice",
    "client_id": "",
    "unit": "bytes_per_second",
    "usage": None,
    "limit": None,
    "limit_state": "unknown",
    "utilization": None,
    "tokens": None,
    "burst_tokens": None,
    "burst_used": None,
    "throttle_time_seconds": 0.0,
    "cause": None,
    "owner": None,
    "rule": None,
    "recent": [None] * 20,
}
ZOE = {"name": "6 user <default>", "level": "default_user", "user": "<default>", "client_id": ""}
ENTITIES = {
    "over its limit": (
        usage(user="zoe", of=limits(), limit=500.0, usage=600.0, throttle_time_seconds=0.5),
        {
            "user": "zoe",
            "usage": 600.0,
            "limit": 500.0,
            "limit_state": "limited",
            "utilization": 1.2,
            "throttle_time_seconds": 0.5,
            "rule": ZOE,
            "recent": [None] * 19 + [1.2],
        },
    ),
    "fetch": (usage(QuotaType.FETCH, usage=1.0), {"quota_type": "fetch", "usage": 1.0}),
    "request": (usage(QuotaType.REQUEST), {"quota_type": "request", "unit": "threads"}),
    "mutations": (
        usage(QuotaType.CONTROLLER_MUTATION, limit=1.0, tokens=-1.0, burst_tokens=10.0),
        {
            "quota_type": "controller_mutation",
            "unit": "mutations_per_second",
            "limit": 1.0,
            "limit_state": "limited",
            "tokens": -1.0,
            "burst_tokens": 10.0,
            "burst_used": 1.1,
            "recent": [None] * 19 + [1.1],
        },
    ),
}


@pytest.mark.parametrize(("entity", "found"), ENTITIES.values(), ids=ENTITIES)
def test_an_entity(entity: EntityUsage, found: dict[str, Any]) -> None:
    """All numbers in base units, all names as the labels of the metrics, units as the names of families end."""
    assert answer(snapshot(entity))["entities"] == [{**ALICE, **found}]


@pytest.mark.parametrize(
    ("of", "limit", "used", "state", "numbers"),
    [
        (limits(), 500.0, 0.0, "limited", (0.0, 500.0, 0.0)),
        (limits(), 500.0, None, "limited", (None, 500.0, None)),
        (limits(rules={}), None, 7.0, "unlimited", (7.0, None, None)),
        (None, None, 7.0, "unknown", (7.0, None, None)),
    ],
)
def test_a_missing_limit_is_unlimited_or_unknown(
    of: Limits | None, limit: float | None, used: float | None, state: str, numbers: tuple[float | None, ...]
) -> None:
    """A program need not guess; and how many are unknown stands above all, whatever is asked for."""
    shown = snapshot(usage(of=of, limit=limit, usage=used))
    (entity,) = answer(shown, show="all")["entities"]
    assert entity["limit_state"] == state
    assert (entity["usage"], entity["limit"], entity["utilization"]) == numbers
    assert (entity["rule"] is None) == (state != "limited")
    assert answer(shown, show="throttled")["limits_unknown"] == (state == "unknown")


def test_owners_in_parts() -> None:
    """Each row has its own, and a query finds an owner's; following `next` gives each entity once."""
    own = [usage(user=user, client_id="app", limit=1.0) for user in ("bob", "eve")]
    shown = snapshot(usage(limit=1.0), *own)
    rows = answer(shown, sort="name")["entities"]
    assert [each["owner"] for each in rows] == [None, "billing\n", "billing\n"]
    first, last = (answer(shown, owner="billing", size="1", offset=offset) for offset in ("0", "1"))
    assert (first["total"], first["offset"], first["size"], first["taken_at"]) == (2, 0, 1, NOW)
    assert (first["next"], last["next"]) == ("?owner=billing&offset=1&size=1", None)
    assert [each["user"] for each in last["entities"]] == ["eve"]
    assert answer(shown, owner="nobody")["entities"] == []


def test_names_hold_anything() -> None:
    """Halves of surrogate pairs as well, and they are not cut; what is no number is null."""
    hostile = '</script>"\n\ud800ü'
    odd = usage(user=hostile, client_id="x" * 32_000, limit=1.0, usage=float("nan"))
    (entity,) = answer(snapshot(odd))["entities"]
    assert (entity["user"], entity["client_id"]) == (hostile, "x" * 32_000)
    assert entity["usage"] is None


def test_long_names_make_a_list_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is bounded whatever names clients choose; `next` leads to the rest, and the snapshot counts it."""
    monkeypatch.setattr(documents, "MOST_CHARACTERS", 2_000)
    many = [usage(user=f"{n}" * 700, limit=1.0, usage=n / 9) for n in range(5)]
    rules = QuotaRules({QuotaEntity(each.entity.user): 1.0 for each in many})
    known = limits(rules={QuotaType.PRODUCE: rules}, connection_limits={})
    shown = snapshot(*many, limits=known)
    first = answer(shown, sort="name")
    assert len(first["entities"]) == 2
    assert first["next"] == "?sort=name&offset=2"
    listed = parsed(rules_document(find_rules(shown, RuleQuery())))
    assert (len(listed["rules"]), listed["total"]) == (2, 5)
    assert listed["next"] == "?offset=2"
    whole = parsed(snapshot_document(shown))
    assert (len(whole["rules"]), whole["rules_total"]) == (2, 5)
    assert (len(whole["entities"]), whole["entities_total"]) == (2, 5)
    assert [each["user"][0] for each in whole["entities"]] == ["4", "3"]


def test_rules_of_clients_and_addresses() -> None:
    """Each with its limit in both units, and what is measured under it: null when that is unknown."""
    shown = snapshot(usage(of=limits(), usage=900.0, limit=1000.0))
    listed = parsed(rules_document(find_rules(shown, RuleQuery())))
    assert (listed["limits_known"], listed["total"], listed["next"]) == (True, 4, None)
    by_key = {(rule["key"], rule["level"]): rule for rule in listed["rules"]}
    assert by_key["producer_byte_rate", "user"] == {
        "key": "producer_byte_rate",
        "rule": "3 user alice",
        "level": "user",
        "user": "alice",
        "client_id": "",
        "ip": "",
        "value": 1000.0,
        "limit": 1000.0,
        "unit": "bytes_per_second",
        "entities": 1,
        "utilization": 0.9,
        "throttled": 0,
    }
    pair = by_key["request_percentage", "user_client"]
    assert (pair["value"], pair["limit"], pair["unit"]) == (50.0, 0.5, "threads")
    assert (pair["entities"], pair["utilization"]) == (0, None)
    address = by_key["connection_creation_rate", None]
    assert (address["ip"], address["unit"]) == ("<default>", "connections_per_second")
    unknown = parsed(rules_document(find_rules(snapshot(limits=None), RuleQuery())))
    assert (unknown["limits_known"], unknown["rules"]) == (False, [])


def explained(shown: Snapshot, user: str | None, client_id: str | None, **given: str) -> dict[str, Any]:
    trails, episodes = Trails(), Episodes()
    trails.note(shown)
    episodes.note(shown)
    found = find_entity(shown, trails, episodes, user, client_id)
    return parsed(explain_document(found, EntityQuery.read(given)))


def test_an_explanation_has_what_is_measured_under_it() -> None:
    """The rules as the command prints them, and the entities with history and episodes, in parts."""
    known = limits()
    slow = usage(of=known, usage=900.0, limit=1000.0, throttle_time_seconds=0.1)
    shown = snapshot(slow, usage(of=known, user="bob"), usage(of=known, broker="2", usage=1.0))
    found = explained(shown, "alice", "app", size="1")
    assert (found["user"], found["client_id"]) == ("alice", "app")
    levels = [quota["decision"]["level"] for quota in found["quotas"][::2]]
    assert levels == ["user", "user_client"]
    assert (found["total"], found["limits_known"]) == (2, True)
    assert found["next"] == "?user=alice&client_id=app&offset=1&size=1"
    (entity,) = found["entities"]
    assert (entity["broker"], entity["throttle_time_seconds"]) == ("1", 0.1)
    assert entity["history"]["utilization"][-2:] == [None, 0.9]
    assert entity["history"]["throttle_time_seconds"][-1] == 0.1
    assert entity["history"]["times"][-1] == NOW - NOW % 15
    assert entity["episodes"] == [{"began_at": NOW, "ended_at": None, "longest_seconds": 0.1}]
    unknown = explained(snapshot(slow, limits=None), "alice", None)
    assert (unknown["limits_known"], unknown["quotas"], len(unknown["entities"])) == (False, [], 1)


def throttles(*shown: Snapshot, **given: str) -> dict[str, Any]:
    known = Episodes()
    for each in shown:
        known.note(each)
    return parsed(episodes_document(shown[-1], known, EpisodeQuery.read(given)))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, [1, 2, 0]),
        ({"user": "alice"}, [2, 0]),
        ({"user": "alice", "client_id": "app"}, [1, 2, 0]),
        ({"client_id": "app"}, [1, 2]),
        ({"user": "bob", "client_id": ""}, []),
        ({"type": "request"}, [1]),
        ({"since": f"{NOW}"}, [1, 2, 0]),
        ({"since": f"{NOW + 1}"}, []),
        ({"size": "1", "offset": "1"}, [2]),
    ],
)
def test_episodes_of_a_client(given: dict[str, str], found: list[int]) -> None:
    """Those of each entity that its requests count under, as it was when its throttle time was longest."""
    each = [
        usage(of=limits(), usage=2_000.0, limit=1_000.0, throttle_time_seconds=0.5),
        usage(QuotaType.REQUEST, "", "app", throttle_time_seconds=1.0),
        usage(user="alice", client_id="app", broker="2", throttle_time_seconds=2.0),
    ]
    before = replace(snapshot(*each[:1]), taken_at=NOW - 60)
    listed = throttles(before, snapshot(*each), **given)
    throttle_times = [row["throttle_time_seconds"] for row in listed["episodes"]]
    assert throttle_times == [each[at].throttle_time_seconds for at in found]
    assert (listed["since"], listed["gaps"]) == (NOW - 60, [])
    assert listed["next"] == ("?offset=2&size=1" if "size" in given else None)
    for row in listed["episodes"][2:]:
        assert (row["began_at"], row["seen_at"], row["ongoing"]) == (NOW - 60, NOW, True)
        assert (row["rule"]["name"], row["utilization"]) == ("3 user alice", 2.0)


@pytest.mark.parametrize("since", ["-1", "nan", "inf", "yesterday"])
def test_a_time_that_is_none(since: str) -> None:
    """Is an error that says what it has to be."""
    with pytest.raises(InvalidQuery, match="a Unix time in seconds"):
        EpisodeQuery.read({"since": since})


def test_runbooks_in_parts() -> None:
    """Following `next` gives each once."""
    texts = {f"Alert{number}": f"# {number}" for number in range(3)}
    first = parsed(runbooks_document(texts, EntityQuery.read({"size": "2"})))
    assert (first["total"], first["next"]) == (3, "?offset=2&size=2")
    assert first["runbooks"][0] == {"alert": "Alert0", "path": "runbooks/Alert0", "text": "# 0"}
    last = parsed(runbooks_document(texts, EntityQuery.read({"size": "2", "offset": "2"})))
    assert ([each["alert"] for each in last["runbooks"]], last["next"]) == (["Alert2"], None)


def test_answers_are_as_openapi_describes_them() -> None:
    """Every answer, with everything that can be null or absent, and every parameter is read."""
    described = parsed(openapi())
    bucket = usage(QuotaType.CONTROLLER_MUTATION, "zoe", limit=1.0, tokens=-1.0, burst_tokens=10.0)
    busy = usage(of=limits(), usage=900.0, limit=1000.0, throttle_time_seconds=0.1)
    node = NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: 3.0})
    for shown in (snapshot(limits=None), snapshot(busy, bucket, nodes=(node,), sources=(health(up=False, error="x"),))):
        answers = {
            "entities": answer(shown),
            "rules": parsed(rules_document(find_rules(shown, RuleQuery()))),
            "episodes": throttles(shown),
            "explain": explained(shown, "alice", "app"),
            "runbooks": parsed(runbooks_document({"A": "x"}, EntityQuery())),
            "health": parsed(health_document(shown)),
            "snapshot": parsed(snapshot_document(shown)),
        }
        assert {f"/api/v1/{name}" for name in answers} == set(described["paths"])
        for name, given in answers.items():
            ok = described["paths"][f"/api/v1/{name}"]["get"]["responses"]["200"]
            schema = {**ok["content"]["application/json"]["schema"], "components": described["components"]}
            jsonschema.Draft202012Validator(schema).validate(given)
            model = schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            assert set(model["properties"]) == set(given)


@pytest.mark.parametrize("name", ["entities", "rules", "explain", "runbooks"])
def test_every_described_parameter_is_read(name: str) -> None:
    """Each of its values is taken, and one that is none of them is refused, where there are some."""
    read = RuleQuery.read if name == "rules" else EntityQuery.read
    for parameter, schema in ANSWERS[name][1].items():
        for value in schema.get("enum", [schema.get("minimum", "x")]):
            read({parameter: str(value)})
        if "enum" in schema or "maximum" in schema:
            with pytest.raises(InvalidQuery):
                read({parameter: str(schema.get("maximum", 0) + 1) + "x"})


def test_health() -> None:
    """The findings with the worst severity, sources and nodes."""
    down = health(up=False, error="refused")
    node = NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: 3.0})
    shown = parsed(health_document(snapshot(usage(), sources=(down,), nodes=(node,))))
    assert shown["severity"] == "error"
    assert [each["code"] for each in shown["findings"]] == ["source_unreadable"]
    assert shown["sources"][0]["error"] == "refused"
    assert shown["nodes"][0]["delay_queue_size"] == {"produce": 3.0}
    assert (shown["limits_known"], shown["limits"]["read_at"]) == (True, NOW - 5)
    assert shown["settings"]["1"]["request_capacity_threads"] == 11.0


@pytest.mark.parametrize("section", ["Entities", "Rules", "Health"])
def test_every_documented_field_exists(section: str) -> None:
    """The tables of fields in docs/api.md name what answers have."""
    shown = snapshot(usage(of=limits()), sources=(health(up=False, error="refused"),))
    found, rows = {
        "Entities": (answer(shown, show="all"), "entities"),
        "Rules": (parsed(rules_document(find_rules(shown, RuleQuery()))), "rules"),
        "Health": (parsed(health_document(shown)), "findings"),
    }[section]
    text = Path("docs/api.md").read_text().split(f"\n## {section}\n")[1]
    items = re.findall(r"\n\n((?:- `.*\n)+)", text.split("\n## ")[0])[-1]
    first = [line.split(": ")[0] for line in items.splitlines()]
    fields = set(re.findall(r"`(\w+)`", " ".join(first)))
    assert fields
    assert fields <= {*found, *found[rows][0]}
