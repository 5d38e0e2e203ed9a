from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.exporter.examples import usage

from quotascope.exporter.exposition import section as section_module
from quotascope.exporter.exposition.order import Order
from quotascope.exporter.exposition.places import Run, Scattered
from quotascope.exporter.exposition.series import entity_order
from quotascope.exporter.snapshot import Entity, EntityUsage
from quotascope.metrics import QuotaType

KINDS = (QuotaType.PRODUCE, QuotaType.REQUEST)


def crowd(*users: str, broker: str = "1") -> list[EntityUsage]:
    """Each with two quotas, as the join leaves those of a node."""
    return [
        usage(broker=broker, user=user, quota_type=kind)
        for kind in KINDS
        for user in users
    ]


def shown(order: Order) -> list[EntityUsage]:
    """All in their order."""
    return [each for kind in KINDS for each in order.sections[kind].usages]


def test_clients_of_a_node_stand_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after some came and left; only who stands beside these is looked at."""
    order, usages = Order(), crowd("a", "b", "c", "d", "e", "f")
    order.take(usages)
    new = crowd("bb", "g")
    usages = [*usages[:2], new[0], *usages[2:6], *usages[7:8], new[2], *usages[8:]]
    asked = []

    def noted(entity: Entity) -> tuple[str, str, tuple[int, str]]:
        asked.append(entity)
        return entity_order(entity)

    monkeypatch.setattr(section_module, "entity_order", noted)
    order.take(usages)
    assert {entity.user for entity in asked} == {"b", "bb", "c"}
    section = order.sections[QuotaType.REQUEST]
    assert section.places == Run(7, 13)
    assert section.news.places == section.change.fresh_places() == [1]  # type: ignore[union-attr]
    assert shown(order) == usages


def test_a_client_out_of_order_is_put_where_it_belongs() -> None:
    """Whoever reads the snapshot sees it last."""
    order, usages = Order(), crowd("b", "c", "d", "e")
    order.take(usages)
    late = usage(user="a", quota_type=QuotaType.PRODUCE)
    order.take([*usages, late])
    assert isinstance(order.sections[QuotaType.PRODUCE].places, Scattered)
    assert shown(order) == [late, *usages]
    order.take(usages)
    assert order.sections[QuotaType.PRODUCE].places == Run(0, 4)
    assert shown(order) == usages


def test_entities_made_anew_are_followed() -> None:
    """After a change of limits all are other objects; those that are equal keep what was made of them."""
    order, usages = Order(), crowd("a", "b", "c")
    order.take(usages)
    anew = [replace(each, entity=replace(each.entity)) for each in usages]
    order.take(anew)
    assert {section.change for section in order.sections.values()} == {None}
    assert all(ours is theirs for ours, theirs in zip(shown(order), anew, strict=True))


def test_a_snapshot_that_failed_half_way_is_not_built_upon() -> None:
    """What comes after it is sorted anew."""
    order, usages = Order(), crowd("a", "b", "c", "d")
    order.take(usages)
    broken: Any = usage(user="e", broker="2")
    broken.entity = replace(broken.entity, broker=None)
    with pytest.raises(AttributeError):
        order.take([*usages[1:], broken])
    order.take(usages[2:])
    assert shown(order) == usages[2:]
