"""Which node's mutation beans count."""

import pytest

from quotascope.exporter.join.staleness import active_controllers


@pytest.mark.parametrize(
    ("told", "leader", "expected"),
    [
        ({"1": True}, None, {"1": True}),
        ({"1": False}, "1", {"1": False}),
        ({"1": None, "2": True}, "1", {"1": False, "2": True}),
        ({"1": None, "2": False}, "1", {"1": True, "2": False}),
        ({"1": None, "2": None}, "2", {"1": False, "2": True}),
        ({"1": None}, None, {"1": None}),
        ({"1": None, "2": False}, None, {"1": None, "2": False}),
        ({"1": True, "2": True}, "1", {"1": True, "2": True}),
        ({}, "1", {}),
    ],
)
def test_a_node_knows_best_itself(
    told: dict[str, bool | None], leader: str | None, expected: dict[str, bool | None]
) -> None:
    """Then whether another one leads, then what the Admin API said."""
    assert active_controllers(told, leader) == expected
