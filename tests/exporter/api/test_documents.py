import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.exporter.examples import NOW, health, limits, snapshot, usage

from quotascope.exporter.api import documents
from quotascope.exporter.api.documents import (
    encoded,
    entities_answer,
    health_document,
    rules_answer,
    snapshot_document,
)
from quotascope.exporter.config import OwnerConfig
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.limits import Limits
from quotascope.exporter.page.owners import Owners
from quotascope.exporter.page.query import EntityQuery, find_entities, read_query
from quotascope.exporter.snapshot import NodeUsage, Snapshot
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType

OWNERS = Owners([OwnerConfig(team="billing\n", client_id="app")])


def answer(shown: Snapshot, **given: str) -> dict[str, Any]:
    """The entities for a query, parsed."""
    trails = Trails()
    trails.note(shown)
    return parsed(
        entities_answer(find_entities(shown, trails, read_query(given), OWNERS))
    )


def parsed(document: object) -> dict[str, Any]:
    """A document as a program reads it."""
    read: dict[str, Any] = json.loads(encoded(document))
    return read


def test_an_entity() -> None:
    """All numbers in base units, all names as the labels of the metrics."""
    slow = usage(
        user="zoe", of=limits(), limit=500.0, usage=600.0, throttle_time_seconds=0.5
    )
    (entity,) = answer(snapshot(slow))["entities"]
    recent = entity.pop("recent")
    assert entity == {
        "broker": "1",
        "quota_type": "produce",
        "user": "zoe",
        "client_id": "",
        "unit": "bytes_per_second",
        "usage": 600.0,
        "limit": 500.0,
        "limit_state": "limited",
        "utilization": 1.2,
        "tokens": None,
        "burst_tokens": None,
        "burst_used": None,
        "throttle_time_seconds": 0.5,
        "cause": None,
        "owner": None,
        "rule": {
            "name": "6 user <default>",
            "level": "default_user",
            "user": "<default>",
            "client_id": "",
        },
    }
    assert recent == [None] * 19 + [1.2]


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
    of: Limits | None,
    limit: float | None,
    used: float | None,
    state: str,
    numbers: tuple[float | None, ...],
) -> None:
    """A program need not guess; and how many are unknown stands above all, whatever is asked for."""
    shown = snapshot(usage(of=of, limit=limit, usage=used))
    (entity,) = answer(shown, show="all")["entities"]
    assert entity["limit_state"] == state
    assert (entity["usage"], entity["limit"], entity["utilization"]) == numbers
    assert (entity["rule"] is None) == (state != "limited")
    assert answer(shown, show="throttled")["limits_unknown"] == (state == "unknown")


def test_owners() -> None:
    """Each row has its own, and a query finds an owner's, in parts as well."""
    own = [usage(user=user, client_id="app", limit=1.0) for user in ("bob", "eve")]
    shown = snapshot(usage(limit=1.0), *own)
    rows = answer(shown, sort="name")["entities"]
    assert [each["owner"] for each in rows] == [None, "billing\n", "billing\n"]
    found = answer(shown, owner="billing", size="1")
    assert (found["total"], found["next"]) == (2, "?owner=billing&offset=1&size=1")
    assert answer(shown, owner="nobody")["entities"] == []


def test_mutations() -> None:
    """With tokens and burst."""
    broke = usage(
        QuotaType.CONTROLLER_MUTATION, limit=1.0, tokens=-1.0, burst_tokens=10.0
    )
    (entity,) = answer(snapshot(broke))["entities"]
    assert (entity["tokens"], entity["burst_tokens"]) == (-1.0, 10.0)
    assert (entity["burst_used"], entity["usage"], entity["rule"]) == (1.1, None, None)


def test_parts_of_a_long_list() -> None:
    """Following `next` gives each entity once."""
    many = snapshot(*(usage(user=f"u{n}", limit=1.0, usage=n / 9) for n in range(5)))
    first = answer(many, size="2", sort="name")
    assert (first["total"], first["offset"], first["size"]) == (5, 0, 2)
    assert first["taken_at"] == NOW
    assert first["next"] == "?sort=name&offset=2&size=2"
    last = answer(many, size="2", sort="name", offset="4")
    assert last["next"] is None
    assert [entity["user"] for entity in last["entities"]] == ["u4"]


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
    listed = parsed(rules_answer(shown, EntityQuery()))
    assert (len(listed["rules"]), listed["total"]) == (2, 5)
    assert listed["next"] == "?offset=2"
    whole = parsed(snapshot_document(shown))
    assert (len(whole["rules"]), whole["rules_total"]) == (2, 5)
    assert (len(whole["entities"]), whole["entities_total"]) == (2, 5)
    assert [each["user"][0] for each in whole["entities"]] == ["4", "3"]


def test_rules_of_clients_and_addresses() -> None:
    """Each with its limit in both units, and what is measured under it: null when that is unknown."""
    known = limits()
    shown = snapshot(usage(of=known, usage=900.0, limit=1000.0))
    listed = parsed(rules_answer(shown, EntityQuery()))
    assert (listed["limits_known"], listed["total"], listed["next"]) == (True, 4, None)
    by_key = {(rule["key"], rule["level"]): rule for rule in listed["rules"]}
    alice = by_key["producer_byte_rate", "user"]
    assert alice == {
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
    }
    pair = by_key["request_percentage", "user_client"]
    assert (pair["value"], pair["limit"], pair["unit"]) == (50.0, 0.5, "threads")
    assert (pair["entities"], pair["utilization"]) == (0, None)
    address = by_key["connection_creation_rate", None]
    assert (address["ip"], address["unit"]) == ("<default>", "connections_per_second")
    unknown = parsed(rules_answer(snapshot(limits=None), EntityQuery()))
    assert (unknown["limits_known"], unknown["rules"]) == (False, [])


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


@pytest.mark.parametrize(
    ("quota_type", "label", "unit"),
    [
        (QuotaType.PRODUCE, "produce", "bytes_per_second"),
        (QuotaType.FETCH, "fetch", "bytes_per_second"),
        (QuotaType.REQUEST, "request", "threads"),
        (QuotaType.CONTROLLER_MUTATION, "controller_mutation", "mutations_per_second"),
    ],
)
def test_units_of_quota_types(quota_type: QuotaType, label: str, unit: str) -> None:
    """As the names of the metric families end, and as docs/api.md has them."""
    (entity,) = answer(snapshot(usage(quota_type, usage=1.0)))["entities"]
    assert (entity["quota_type"], entity["unit"]) == (label, unit)


@pytest.mark.parametrize("section", ["Entities", "Rules", "Health"])
def test_every_documented_field_exists(section: str) -> None:
    """The tables of fields in docs/api.md name what answers have."""
    shown = snapshot(usage(of=limits()), sources=(health(up=False, error="refused"),))
    entities, rules = (
        answer(shown, show="all"),
        parsed(rules_answer(shown, EntityQuery())),
    )
    state = parsed(health_document(shown))
    known = {
        "Entities": {*entities, *entities["entities"][0]},
        "Rules": {*rules, *rules["rules"][0]},
        "Health": {*state, *state["findings"][0]},
    }
    text = Path("docs/api.md").read_text().split(f"\n## {section}\n")[1]
    (table,) = re.findall(
        r"\n\| field.*\n\|---.*\n((?:\|.*\n)+)", text.split("\n## ")[0]
    )
    first = [line.split("|")[1] for line in table.splitlines()]
    fields = set(re.findall(r"`(\w+)`", " ".join(first)))
    assert fields
    assert fields <= known[section]
