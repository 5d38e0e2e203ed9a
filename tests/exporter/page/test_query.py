from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from tests.exporter.examples import snapshot, usage

from quotascope.exporter.diagnosis.selection import Order, Show
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.errors import InvalidQuery
from quotascope.exporter.page.query import EntityQuery, find_entities
from quotascope.exporter.page.teams import Teams
from quotascope.metrics.kafka.entities import QuotaType

EVERYTHING = EntityQuery(
    sort=Order.DELAY,
    reverse="1",
    show=Show.NEAR,
    type=QuotaType.CONTROLLER_MUTATION,
    q="a&b=ü",
    broker="7",
    team="pay & co",
    offset=100,
    size=25,
)


def test_nothing_said() -> None:
    """Without parameters, limited entities are shown with the fullest first; unknown parameters are ignored."""
    assert EntityQuery.read({}) == EntityQuery()
    assert EntityQuery.read({"utm": "x", "sort": "", "offset": "", "q": ""}) == EntityQuery()
    assert EntityQuery().address == "?"


def test_everything_said() -> None:
    """A query with every parameter gives an address that is read as the same query."""
    address = EVERYTHING.address
    assert address == (
        "?sort=delay&reverse=1&show=near&type=controller_mutation&q=a%26b%3D%C3%BC&broker=7&team=pay+%26+co&"
        "offset=100&size=25"
    )
    parameters = dict(parse_qsl(address[1:]))
    for further in ({}, {"reverse": "true", "team": "pay & co\n"}):
        assert EntityQuery.read({**parameters, **further}) == EVERYTHING


SENSELESS = {
    "sort": ["color"],
    "reverse": ["maybe"],
    "show": ["x"],
    "type": ["mutation", "\ud800"],
    "offset": ["-1", "²", "\ud800", "9" * 5_000],
    "size": ["0", "501", "1e2"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in SENSELESS.items() for value in values])
def test_senseless_values(name: str, value: str) -> None:
    """A senseless value of a parameter is refused in one short line that lists the values to choose from."""
    with pytest.raises(InvalidQuery, match=f"^{name}=.*it has to be") as raised:
        EntityQuery.read({name: value})
    assert len(str(raised.value)) < 400


def test_text_that_cannot_be_seen_is_dropped() -> None:
    """Invisible characters of a search are dropped, so that the form shows what is searched for, and it is cut."""
    query = EntityQuery.read({"q": "a\n\x00\ud800b" + "c" * 9_999})
    assert query.q.startswith("abc")
    assert len(query.q) < 201


@pytest.mark.parametrize(
    ("offset", "size", "address_before", "following"),
    [
        (0, 10, None, "?show=all&offset=10&size=10"),
        (4, 10, "?show=all&size=10", "?show=all&offset=14&size=10"),
        (10, 10, "?show=all&size=10", "?show=all&offset=20&size=10"),
        (25, 10, "?show=all&offset=15&size=10", None),
        (19, 10, "?show=all&offset=9&size=10", "?show=all&offset=29&size=10"),
        (20, 10, "?show=all&offset=10&size=10", None),
        (0, 30, None, None),
        (0, 29, None, "?show=all&offset=29&size=29"),
    ],
)
def test_parts(offset: int, size: int, address_before: str | None, following: str | None) -> None:
    """The first part of thirty rows has no previous part, and the last part has no next one."""
    state = snapshot(*(usage(user=f"user-{number:02}") for number in range(30)))
    parameters = {"show": "all", "offset": str(offset), "size": str(size)}
    view = find_entities(state, Trails(), EntityQuery.read(parameters), Teams())
    assert view.total == 30
    assert len(view.rows) == min(size, 30 - offset)
    assert (view.query.before, view.query.following(view.total)) == (address_before, following)
