"""
Forms of rule files that people have published, shortened.

What each shows of quotas, and what it leaves out and why.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from quotascope.exporter.agent_rules import Checked, check, configurations
from quotascope.exporter.coverage import EntityKind

FOLDER = Path(__file__).parent / "published"
USER, CLIENT_ID, PAIR = EntityKind
ALL = frozenset(EntityKind)
NONE: frozenset[EntityKind] = frozenset()


class Right(NamedTuple):
    """The right answer about a rule file: kinds of clients with usage by quota type, and what it shows of nodes."""

    dialect: str
    produce: frozenset[EntityKind]
    request: frozenset[EntityKind]
    mutations: frozenset[EntityKind]
    queues: bool = False
    node_id: bool = False
    reason: str = "no rule matches"
    refused: str = ""


FILES = {
    "kafka-0-8-2": Right("prometheus", NONE, NONE, NONE),
    "strimzi-kafka-metrics": Right("prometheus", NONE, NONE, NONE),
    "chart-with-allowed-names": Right("jmx_default", NONE, NONE, NONE, queues=True),
    "operator-with-app-info": Right(
        "kafka_2_0_0",
        frozenset({CLIENT_ID, PAIR}),
        frozenset({CLIENT_ID, PAIR}),
        frozenset({CLIENT_ID, PAIR}),
        node_id=True,
    ),
    "cached-two-rules": Right(
        "kafka_2_0_0",
        frozenset({CLIENT_ID, PAIR}),
        frozenset({CLIENT_ID, PAIR}),
        frozenset({CLIENT_ID, PAIR}),
        node_id=True,
    ),
    "quota-as-label": Right(
        "kafka_2_0_0",
        frozenset({USER, PAIR}),
        frozenset({USER, PAIR}),
        NONE,
        queues=True,
        reason="",
    ),
    "client-ids-only": Right("jmx_rules", frozenset({CLIENT_ID}), NONE, NONE, reason="does not name the bean"),
    "attribute-as-label": Right("jmx_rules", ALL, ALL, ALL, node_id=True, reason=""),
    "any-label": Right("jmx_rules", ALL, ALL, ALL, node_id=True, reason=""),
    "value-in-the-name": Right("kafka_2_0_0", NONE, NONE, NONE, refused="at the end of its name is no unit"),
}  # fmt: skip


def checked(text: str) -> Checked:
    (config,) = configurations(text, "file")
    return check(config)


def kinds(report: Checked, name: str) -> set[EntityKind | None]:
    return {fact.kind for fact in report.facts if fact.name == name and fact.is_shown}


def test_each_file_has_its_answer() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_what_a_published_file_shows(name: str) -> None:
    right = FILES[name]
    report = checked((FOLDER / f"{name}.yml").read_text())
    assert (report.dialect, right.refused in report.refused) == (right.dialect, True)
    assert bool(report.refused) is bool(right.refused)
    assert kinds(report, "produce usage") == kinds(report, "fetch usage") == right.produce
    assert kinds(report, "request usage") == right.request
    assert kinds(report, "controller mutation usage") == right.mutations
    node_facts = {fact.name for fact in report.facts if fact.kind is None and fact.is_shown}
    assert ("produce delay queue" in node_facts, "node id" in node_facts) == (right.queues, right.node_id)
    (user,) = (fact for fact in report.facts if fact.name == "produce usage" and fact.kind is USER)
    assert right.reason in (user.reason or "")
    assert user.is_shown is (USER in right.produce)


@pytest.mark.parametrize("name", FILES)
def test_with_the_additions_a_published_file_shows_everything(name: str) -> None:
    document = yaml.safe_load((FOLDER / f"{name}.yml").read_text())
    report = checked(yaml.safe_dump(document))
    assert not report.complete
    document["rules"] = yaml.safe_load(report.additions) + document["rules"]
    for key in {"includeObjectNames", "whitelistObjectNames"} & document.keys():
        document[key] += report.object_names
    mended = checked(yaml.safe_dump(document))
    assert mended.complete, [fact for fact in mended.facts if not fact.is_shown or not fact.unusual]
