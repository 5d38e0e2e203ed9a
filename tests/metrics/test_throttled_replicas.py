"""The lists of throttled replicas in topic configs."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import ALL_REPLICAS, InvalidConfig, parse_throttled_replicas


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("0:101,1:102,2:101", (0, 2)),
        ("7:102", ()),
        ("007:0101", (7,)),
        ("0:101,", (0,)),
        (" 0:101,1:101 ", (0, 1)),
        ("*", ALL_REPLICAS),
        (" *\n", ALL_REPLICAS),
        ("", ()),
        ("  ", ()),
        (",", ()),
        ("99999999999999999999:102", ()),
    ],
)
def test_parses(text: str, partitions: tuple[int, ...]) -> None:
    """Only the replicas of this broker count, and only their partitions are looked at closely."""
    assert parse_throttled_replicas(text, 101) == partitions


@pytest.mark.parametrize(
    "text",
    [
        *("all", "0", "0:", ":101", "0:101:1", "*,0:101", "0:-1", "-1:101", "٣:101"),
        *("0:101,,1:101", ",0:101", "0:101, 1:101", "0 :101"),
        *("2147483648:101", "0:99999999999", f"{'9' * 10_000}:101"),
    ],
)
def test_refuses_what_brokers_cannot_read(text: str) -> None:
    """No matter whether Kafka would store it."""
    with pytest.raises(InvalidConfig):
        parse_throttled_replicas(text, 101)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else is raised."""
    with suppress(InvalidConfig):
        assert all(each >= -1 for each in parse_throttled_replicas(text, 1))
