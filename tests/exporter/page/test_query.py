import pytest

from quotascope.exporter.diagnosis.selection import Order, Selection, Show
from quotascope.exporter.errors import InvalidQuery
from quotascope.exporter.page.query import Query, address_of, read_query
from quotascope.metrics import QuotaType

EVERYTHING = Query(
    selection=Selection(
        order=Order.DELAY,
        backwards=True,
        show=Show.NEAR,
        quota_type=QuotaType.CONTROLLER_MUTATION,
        text="a&b=ü",
        broker="7",
    ),
    offset=100,
    size=25,
)


def test_nothing_said() -> None:
    """The fullest of the limited, and what is unknown means nothing."""
    assert read_query({}) == Query()
    assert read_query({"utm": "x", "sort": "", "offset": "", "q": ""}) == Query()
    assert address_of(Query()) == "?"


def test_everything_said() -> None:
    """An address says the same again."""
    address = address_of(EVERYTHING)
    assert address == (
        "?sort=delay&reverse=1&show=near&type=controller_mutation&q=a%26b%3D%C3%BC&broker=7&offset=100&size=25"
    )
    given = {
        "sort": "delay",
        "reverse": "true",
        "show": "near",
        "type": "controller_mutation",
        "q": "a&b=ü",
        "broker": "7",
        "offset": "100",
        "size": "25",
    }
    assert read_query(given) == EVERYTHING


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sort", "colour"),
        ("reverse", "maybe"),
        ("show", "x"),
        ("type", "mutation"),
        ("offset", "-1"),
        ("offset", "²"),
        ("offset", "9" * 5_000),
        ("size", "0"),
        ("size", "501"),
        ("size", "1e2"),
    ],
)
def test_senseless_values(name: str, value: str) -> None:
    """They are named, with what there is, in one short line."""
    with pytest.raises(InvalidQuery) as raised:
        read_query({name: value})
    text = str(raised.value)
    assert text.startswith(f"{name}=")
    assert "it has to be" in text
    assert len(text) < 400


def test_text_that_cannot_be_seen_is_dropped() -> None:
    """So that the form shows what is looked for; and it is not endless."""
    query = read_query({"q": "a\n\x00\ud800b" + "c" * 9_999})
    assert query.selection.text.startswith("abc")
    assert len(query.selection.text) < 201
