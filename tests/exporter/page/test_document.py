import json
from typing import Any

import pytest
from tests.exporter.examples import NOW, limits, snapshot, usage

from quotascope.exporter.limits import Limits
from quotascope.exporter.page.document import document
from quotascope.exporter.page.query import find_entities, read_query
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.trails import Trails
from quotascope.metrics import QuotaType


def told(shown: Snapshot, **given: str) -> dict[str, Any]:
    """The JSON for a query, read again."""
    trails = Trails()
    trails.note(shown)
    read: dict[str, Any] = json.loads(document(find_entities(shown, trails, read_query(given))))  # fmt: skip
    return read


def test_an_entity() -> None:
    """All numbers in base units, all names as the labels of the metrics."""
    slow = usage(
        user="zoe", of=limits(), limit=500.0, usage=600.0, throttle_time_seconds=0.5
    )
    (entity,) = told(snapshot(slow))["entities"]
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
        "rule": {"level": "default_user", "user": "<default>", "client_id": ""},
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
    answer = told(shown, show="all")
    (entity,) = answer["entities"]
    assert entity["limit_state"] == state
    assert (entity["usage"], entity["limit"], entity["utilization"]) == numbers
    assert (entity["rule"] is None) == (state != "limited")
    assert told(shown, show="throttled")["limits_unknown"] == (state == "unknown")


def test_mutations() -> None:
    """With tokens and burst."""
    broke = usage(
        QuotaType.CONTROLLER_MUTATION, limit=1.0, tokens=-1.0, burst_tokens=10.0
    )
    (entity,) = told(snapshot(broke))["entities"]
    assert (entity["tokens"], entity["burst_tokens"]) == (-1.0, 10.0)
    assert (entity["burst_used"], entity["usage"], entity["rule"]) == (1.1, None, None)


def test_parts_of_a_long_list() -> None:
    """Following `next` gives each entity once."""
    many = snapshot(*(usage(user=f"u{n}", limit=1.0, usage=n / 9) for n in range(5)))
    first = told(many, size="2", sort="name")
    assert (first["total"], first["offset"], first["size"]) == (5, 0, 2)
    assert first["taken_at"] == NOW
    assert first["next"] == "?sort=name&offset=2&size=2"
    last = told(many, size="2", sort="name", offset="4")
    assert last["next"] is None
    assert [entity["user"] for entity in last["entities"]] == ["u4"]


def test_names_hold_anything() -> None:
    """What is no Unicode either; what is endless is cut; what is no number is none."""
    hostile = '</script>"\n\ud800ü'
    odd = usage(user=hostile, client_id="x" * 32_000, limit=1.0, usage=float("nan"))
    (entity,) = told(snapshot(odd))["entities"]
    assert entity["user"] == hostile
    assert entity["client_id"] == "x" * 1_000 + "…"
    assert entity["usage"] is None


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
    """As the names of the metric families end, and as docs/page.md has them."""
    (entity,) = told(snapshot(usage(quota_type, usage=1.0)))["entities"]
    assert (entity["quota_type"], entity["unit"]) == (label, unit)
