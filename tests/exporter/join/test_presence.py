"""Eight moments of a real broker: which beans appear, and which stay behind (see `captures/README.md`)."""

import ast
import re
from collections.abc import Mapping

import pytest
from tests.exporter.recorded import CAPTURES, limits, read

from quotascope.exporter.join import Join
from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.snapshot import LimitsHealth, Snapshot
from quotascope.exporter.sources.jolokia import columns_of
from quotascope.exporter.sources.source import LayoutTracker
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

PRODUCE = QuotaType.PRODUCE
DEFAULT_CLIENT = {QuotaEntity(None, DEFAULT): 1e6}
WITH_USERS = {**DEFAULT_CLIENT, QuotaEntity(DEFAULT): 1e6}
WITH_PAIR = {**WITH_USERS, QuotaEntity("u1", "c:1"): 1e6}

Beans = Mapping[str, Mapping[str, float | None]]


def moments() -> list[Beans]:
    """The beans of each moment."""
    text = (CAPTURES / "presence.txt").read_text("utf-8")
    return [
        {
            name: ast.literal_eval(attributes.replace("null", "None"))
            for name, attributes in re.findall(r"^    (.+) (\{.*\})$", part, re.MULTILINE)
        }
        for part in re.split(r"^\d .*$", text, flags=re.MULTILINE)[1:]
    ]


class Broker:
    """Collects the moments one after the other."""

    def __init__(self) -> None:
        self._columns = LayoutTracker(columns_of)
        self._join = Join()
        self._at = 0.0

    def collect(self, beans: Beans, rules: Mapping[QuotaEntity, float]) -> Snapshot:
        """The snapshot at a moment, half a minute after the last."""
        self._at += 30
        keys = [(name, tuple(attributes)) for name, attributes in beans.items()]
        values = [
            float("nan") if value is None else value for attributes in beans.values() for value in attributes.values()
        ]
        layout, numbers = self._columns.place(keys, values)
        table = BeanTable(node_id="1", layout=layout, values=numbers)
        configured = limits({PRODUCE: rules} if rules else {})
        return self._join.snapshot([read(table)], configured, LimitsHealth(), self._at)


def shown(snapshot: Snapshot) -> set[tuple[str, str]]:
    """User and client id of each entity."""
    return {(each.entity.user, each.entity.client_id) for each in snapshot.entities}


RULES_AT: tuple[Mapping[QuotaEntity, float], ...] = (
    {},
    {},
    DEFAULT_CLIENT,
    DEFAULT_CLIENT,
    WITH_USERS,
    WITH_PAIR,
    {},
    {},
)
SHOWN_AT: tuple[set[tuple[str, str]], ...] = (
    set(),
    set(),
    set(),
    {("", "c:1")},
    {("svc:team a", ""), ("u1", "")},
    {("svc:team a", ""), ("u1", "c:1"), ("u1", "")},
    set(),
    set(),
)


@pytest.mark.parametrize("moment", range(8))
def test_only_beans_in_use_are_shown(moment: int) -> None:
    """A fresh exporter sees one moment: what the rules explain is shown, the rest is counted."""
    beans = moments()[moment]
    snapshot = Broker().collect(beans, RULES_AT[moment])
    assert shown(snapshot) == SHOWN_AT[moment]
    entities = sum("byte-rate" in attributes for attributes in beans.values())
    assert snapshot.nodes[0].stale_entities[PRODUCE] == entities - len(SHOWN_AT[moment])


def test_a_running_exporter_follows_the_rules() -> None:
    """Beans that decay under new rules disappear at once, and never come back."""
    broker = Broker()
    seen = [shown(broker.collect(beans, rules)) for beans, rules in zip(moments(), RULES_AT, strict=True)]
    assert seen == list(SHOWN_AT)
