import json
import re
from collections.abc import Callable
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jsonschema
import pytest
from tests.exporter.examples import NOW, health, limits, snapshot, team, usage

from quotascope.exporter.api import answers, documents
from quotascope.exporter.api.openapi import ANSWERS, openapi
from quotascope.exporter.diagnosis.episodes import Episodes
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.errors import InvalidQuery
from quotascope.exporter.page.entity import asked_entity, find_entity
from quotascope.exporter.page.query import SIZE, EntityQuery, EpisodeQuery, PartQuery, find_entities
from quotascope.exporter.page.rules import RuleQuery, find_rules
from quotascope.exporter.page.team_list import TeamQuery, find_teams
from quotascope.exporter.page.teams import Teams
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Snapshot
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

TEAMS = Teams([team("billing\n", client_id="app")])


def answer(state: Snapshot, **parameters: str) -> dict[str, Any]:
    trails = Trails()
    trails.note(state)
    return parsed(answers.entities_document(find_entities(state, trails, EntityQuery.read(parameters), TEAMS)))


def parsed(document: object) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(documents.encoded(document))
    return content


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
    "decided_by": None,
    "team": "__unowned__",
    "rule": None,
    "recent": [None] * 20,
}
LIMITED = {"limit": 1.0, "limit_state": "limited"}
ZOE = {"name": "6 user <default>", "level": "default_user", "user": "<default>", "client_id": ""}
ENTITIES = {
    "over its limit": (
        usage(user="zoe", configured=limits(), limit=500.0, usage=600.0, throttle_time_seconds=0.5),
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
    "at zero": (
        usage(limit=1.0, usage=0.0),
        {**LIMITED, "usage": 0.0, "utilization": 0.0, "recent": [None] * 19 + [0.0]},
    ),
    "unlimited": (usage(configured=limits(rules={}), usage=7.0), {"usage": 7.0, "limit_state": "unlimited"}),
    "fetch": (
        usage(QuotaType.FETCH, client_id="app", usage=7.0),
        {"quota_type": "fetch", "client_id": "app", "usage": 7.0, "team": "billing\n"},
    ),
    "request": (usage(QuotaType.REQUEST, limit=1.0), {**LIMITED, "quota_type": "request", "unit": "threads"}),
    "mutations": (
        usage(QuotaType.CONTROLLER_MUTATION, limit=1.0, tokens=-1.0, burst_tokens=10.0),
        {
            **LIMITED,
            "quota_type": "controller_mutation",
            "unit": "mutations_per_second",
            "tokens": -1.0,
            "burst_tokens": 10.0,
            "burst_used": 1.1,
        },
    ),
    # what is no number is null; halves of surrogate pairs are kept, and names are not cut
    "hostile": (
        usage(user='</script>"\n\ud800ü', client_id="x" * 32_000, usage=nan),
        {"user": '</script>"\n\ud800ü', "client_id": "x" * 32_000},
    ),
}


@pytest.mark.parametrize(("entity", "expected"), ENTITIES.values(), ids=ENTITIES)
def test_an_entity(entity: EntityUsage, expected: dict[str, Any]) -> None:
    """An entity has numbers in base units and names as in the metrics; unknown ones are always counted."""
    state = snapshot(entity)
    row = {**ALICE, **expected}
    assert answer(state, show="all")["entities"] == [row]
    assert answer(state, show="throttled")["limits_unknown"] == (row["limit_state"] == "unknown")


def rules(state: Snapshot, **parameters: str) -> dict[str, Any]:
    return parsed(answers.rules_document(find_rules(state, RuleQuery.read(parameters))))


def test_rules_of_clients_and_addresses() -> None:
    """A rule has its limit in both units and the use of it, which is null while it is unknown."""
    listed = rules(snapshot(usage(configured=limits(), usage=900.0, limit=1000.0)))
    assert (listed["limits_known"], listed["total"], listed["taken_at"]) == (True, 4, NOW)
    assert [",".join(map(str, row)) for row in (listed["rules"][0], *(rule.values() for rule in listed["rules"]))] == [
        "key,rule,level,user,client_id,ip,value,limit,unit,entities,utilization,throttled,hidden_on,misnamed",
        "producer_byte_rate,3 user alice,user,alice,,,1000.0,1000.0,bytes_per_second,1,0.9,0,[],None",
        "producer_byte_rate,6 user <default>,default_user,<default>,,,500.0,500.0,bytes_per_second,0,None,0,[],None",
        "request_percentage,1 alice / app,user_client,alice,app,,50.0,0.5,threads,0,None,0,[],None",
        "connection_creation_rate,ip <default>,None,,,<default>,7.0,7.0,connections_per_second,0,None,0,[],None",
    ]
    unknown = rules(snapshot(limits=None))
    assert (unknown["limits_known"], unknown["rules"]) == (False, [])


def explained(state: Snapshot, **parameters: str) -> dict[str, Any]:
    trails, episodes = Trails(), Episodes()
    trails.note(state)
    episodes.note(state)
    entity_result = find_entity(state, trails, episodes, *asked_entity(parameters))
    return parsed(answers.explain_document(entity_result, EntityQuery.read(parameters)))


def test_an_explanation_has_what_is_measured_under_it() -> None:
    """An explanation has the rules as the command prints them, and the entities with history and episodes."""
    configured = limits()
    slow = usage(configured=configured, usage=900.0, limit=1000.0, throttle_time_seconds=0.1)
    state = snapshot(
        slow, usage(configured=configured, user="bob"), usage(configured=configured, broker="2", usage=1.0)
    )
    document = explained(state, user="alice", client_id="app")
    assert (document["user"], document["client_id"]) == ("alice", "app")
    levels = [quota["decision"]["level"] for quota in document["quotas"][::2]]
    assert levels == ["user", "user_client"]
    assert (document["limits_known"], [row["broker"] for row in document["entities"]]) == (True, ["1", "2"])
    entity = document["entities"][0]
    assert entity["throttle_time_seconds"] == 0.1
    assert entity["history"]["utilization"][-2:] == [None, 0.9]
    assert entity["history"]["throttle_time_seconds"][-1] == 0.1
    assert entity["history"]["times"][-1] == NOW - NOW % 15
    assert entity["episodes"] == [{"began_at": NOW, "ended_at": None, "longest_seconds": 0.1}]
    unknown = explained(snapshot(slow, limits=None), user="alice")
    assert (unknown["limits_known"], unknown["quotas"], len(unknown["entities"])) == (False, [], 1)


def throttles(*states: Snapshot, **parameters: str) -> dict[str, Any]:
    episodes = Episodes()
    for state in states:
        episodes.note(state)
    return parsed(answers.episodes_document(states[-1], episodes, EpisodeQuery.read(parameters)))


@pytest.mark.parametrize(
    ("parameters", "expected"),
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
def test_episodes_of_a_client(parameters: dict[str, str], expected: list[int]) -> None:
    """A client has the episodes of each entity that its requests count under."""
    usages = [
        usage(configured=limits(), usage=2_000.0, limit=1_000.0, throttle_time_seconds=0.5),
        usage(QuotaType.REQUEST, "", "app", throttle_time_seconds=1.0),
        usage(user="alice", client_id="app", broker="2", throttle_time_seconds=2.0),
    ]
    earlier = replace(snapshot(*usages[:1]), taken_at=NOW - 60)
    listed = throttles(earlier, snapshot(*usages), **parameters)
    throttle_times = [row["throttle_time_seconds"] for row in listed["episodes"]]
    assert throttle_times == [usages[number].throttle_time_seconds for number in expected]
    assert (listed["since"], listed["gaps"]) == (NOW - 60, [])
    for row in listed["episodes"][2:]:
        assert (row["began_at"], row["seen_at"], row["ongoing"]) == (NOW - 60, NOW, True)
        assert (row["rule"]["name"], row["utilization"]) == ("3 user alice", 2.0)


@pytest.mark.parametrize("since", ["-1", "nan", "inf", "yesterday"])
def test_a_time_that_is_none(since: str) -> None:
    """A malformed time is an error that names the right form."""
    with pytest.raises(InvalidQuery, match="a Unix time in seconds"):
        EpisodeQuery.read({"since": since})


def runbooks(_shown: Snapshot, **parameters: str) -> dict[str, Any]:
    texts = {f"Alert{number}": f"# {number}" for number in range(5)}
    return parsed(answers.runbooks_document(texts, EntityQuery.read(parameters)))


def test_a_runbook_has_the_path_of_its_page() -> None:
    """The path is relative to the exporter's address."""
    assert runbooks(snapshot())["runbooks"][0] == {"alert": "Alert0", "path": "runbooks/Alert0", "text": "# 0"}


READ: dict[str, Callable[..., dict[str, Any]]] = {
    "entities": answer,
    "rules": rules,
    "episodes": throttles,
    "explain": explained,
    "changes": lambda state, **parameters: parsed(answers.changes_document(state, PartQuery.read(parameters))),
    "runbooks": runbooks,
    "teams": lambda state, **_: parsed(answers.teams_document(find_teams(state, TeamQuery()))),
    "health": lambda state, **_: parsed(answers.health_document(state)),
    "snapshot": lambda state, **_: parsed(answers.snapshot_document(state)),
}
"""The function that makes each answer of a snapshot and parameters."""

LONG = "ü" * 125
LONG_NAMES = snapshot(
    usage(user="other", limit=1.0, throttle_time_seconds=0.5),
    *(
        usage(user=LONG, client_id="app", broker=f"{n}", limit=1.0, usage=n / 9, throttle_time_seconds=1.0 + n)
        for n in range(5)
    ),
    limits=limits(
        rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity(f"{n}" * 128): 1.0 for n in range(5)})}, connection_limits={}
    ),
)


@pytest.mark.parametrize(
    ("name", "rows", "parameters"),
    [
        ("entities", "entities", {"sort": "name", "team": "billing", "size": "2"}),
        ("entities", "entities", {"sort": "name", "q": "ü"}),
        ("rules", "rules", {"type": "produce"}),
        ("episodes", "episodes", {"user": LONG, "client_id": "app", "size": "2"}),
        ("episodes", "episodes", {"client_id": "app"}),
        ("explain", "entities", {"user": LONG, "client_id": "app", "size": "2"}),
        ("explain", "entities", {"user": LONG, "client_id": "app"}),
        ("runbooks", "runbooks", {"size": "2"}),
    ],
)
def test_a_list_in_parts(name: str, rows: str, parameters: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Following `next` gives each row once.

    Parts end at their size, or earlier where long names would make an answer too long.
    """
    answer_of = READ[name]
    whole = answer_of(LONG_NAMES, **parameters | {"size": "500"})
    monkeypatch.setattr(answers, "MOST_CHARACTERS", 1_000)
    parts = [answer_of(LONG_NAMES, **parameters)]
    while address := parts[-1]["next"]:
        parts.append(answer_of(LONG_NAMES, **dict(parse_qsl(address.removeprefix("?"), strict_parsing=True))))
    assert [row for part in parts for row in part[rows]] == whole[rows]
    assert [(len(part[rows]), part["offset"], part["total"]) for part in parts] == [(2, 0, 5), (2, 2, 5), (1, 4, 5)]
    assert {part["size"] for part in parts} == {int(parameters.get("size", SIZE))}


def test_a_snapshot_with_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The document of a snapshot with long names has the entities nearest to their limits, and counts the others."""
    monkeypatch.setattr(answers, "MOST_CHARACTERS", 1_000)
    whole = READ["snapshot"](LONG_NAMES)
    assert (len(whole["rules"]), whole["rules_total"], whole["entities_total"]) == (2, 5, 6)
    assert [row["broker"] for row in whole["entities"]] == ["4", "3"]


def test_answers_are_as_openapi_describes_them() -> None:
    """Every answer, with everything that can be null or absent, and every parameter is read."""
    described = parsed(openapi())
    bucket = usage(QuotaType.CONTROLLER_MUTATION, "zoe", limit=1.0, tokens=-1.0, burst_tokens=10.0)
    busy = usage(configured=limits(), usage=900.0, limit=1000.0, throttle_time_seconds=0.1)
    node = NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: 3.0})
    for state in (snapshot(limits=None), snapshot(busy, bucket, nodes=(node,), sources=(health(up=False, error="x"),))):
        assert {f"/api/v1/{name}" for name in READ} == set(described["paths"])
        for name, answer_of in READ.items():
            document = answer_of(state, user="alice", client_id="app")
            ok = described["paths"][f"/api/v1/{name}"]["get"]["responses"]["200"]
            schema = {**ok["content"]["application/json"]["schema"], "components": described["components"]}
            jsonschema.Draft202012Validator(schema).validate(document)
            model = schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            assert set(model["properties"]) == set(document)


@pytest.mark.parametrize("name", ["entities", "rules", "explain", "runbooks"])
def test_every_described_parameter_is_read(name: str) -> None:
    """Each value that the description of a parameter allows is accepted, and any other is refused."""
    read_query = RuleQuery.read if name == "rules" else EntityQuery.read
    for parameter, schema in ANSWERS[name][1].items():
        for value in schema.get("enum", [schema.get("minimum", "x")]):
            read_query({parameter: str(value)})
        if "enum" in schema or "maximum" in schema:
            with pytest.raises(InvalidQuery):
                read_query({parameter: str(schema.get("maximum", 0) + 1) + "x"})


def test_health() -> None:
    """The answer has the findings with the worst severity, sources and nodes."""
    down = health(up=False, error="refused")
    node = NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: 3.0})
    document = READ["health"](snapshot(usage(), sources=(down,), nodes=(node,)))
    assert document["severity"] == "error"
    assert [finding["code"] for finding in document["findings"]] == ["source_unreadable"]
    assert document["sources"][0]["error"] == "refused"
    assert document["nodes"][0]["delay_queue_size"] == {"produce": 3.0}
    assert (document["limits_known"], document["limits"]["read_at"]) == (True, NOW - 5)
    assert document["settings"]["1"]["request_capacity_threads"] == 11.0


@pytest.mark.parametrize(("section", "rows"), [("Entities", "entities"), ("Rules", "rules"), ("Health", "findings")])
def test_every_documented_field_exists(section: str, rows: str) -> None:
    """The tables of fields in docs/reference/api.md name what answers have."""
    state = snapshot(usage(configured=limits()), sources=(health(up=False, error="refused"),))
    document = READ[section.lower()](state, show="all")
    text = Path("docs/reference/api.md").read_text().split(f"\n## {section}\n")[1]
    items = re.findall(r"\n\n((?:- `.*\n)+)", text.split("\n## ")[0])[-1]
    field_lists = [line.split(": ")[0] for line in items.splitlines()]
    fields = set(re.findall(r"`(\w+)`", " ".join(field_lists)))
    assert fields
    assert fields <= {*document, *document[rows][0]}
