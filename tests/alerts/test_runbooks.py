"""Each alert has a runbook that helps: complete, without gaps, with queries that Prometheus takes."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

import pytest
from tests.alerts.expressions import CLUSTER, FAMILIES, RECORDED, labels_of, matched_labels, selectors
from tests.alerts.runbook_parts import HEADINGS, blocks
from tests.cluster.tools import CLASSES

from quotascope.alerts import Site, thresholds
from quotascope.alerts.book import alerts
from quotascope.alerts.rule import Alert
from quotascope.alerts.runbook import NUMBER, numbers, runbooks
from quotascope.alerts.settings import AlertSettings, AlertSeverity
from quotascope.alerts.thresholds import STORM

RUNBOOKS = dict(runbooks())
KEYS = {
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    *("leader.replication.throttled.rate", "follower.replication.throttled.rate"),
    *("connection_creation_rate", "max.connection.creation.rate"),
}
BLOCKS = [(f"{name}-{at}", block) for name, text in RUNBOOKS.items() for at, block in enumerate(blocks(text))]
QUERIES = [pytest.param(block.text.strip(), id=name) for name, block in BLOCKS if block.language == "promql"]
COMMANDS = sorted({line for _, block in BLOCKS if block.language == "sh" for line in block.text.splitlines()})


def test_every_alert_has_a_runbook_and_the_other_way_round() -> None:
    """Every alert says what to do."""
    assert set(RUNBOOKS) == {alert.name for alert in alerts(Site())}


@pytest.mark.parametrize("name", RUNBOOKS)
def test_runbook_is_complete(name: str) -> None:
    """Title, the four parts in order, what it does not fire for, a query or a command to begin with, and nothing left open."""
    text = RUNBOOKS[name]
    assert text.startswith(f"# {name}\n")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == HEADINGS
    parts = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]
    assert all(part.strip() for part in parts)
    meaning = " ".join(parts[HEADINGS.index("Meaning")].split())
    assert " The alert does not fire " in meaning or "alerts on limits are silent" in meaning
    assert [*blocks(parts[HEADINGS.index("Diagnosis")])]
    assert not re.search(r"TODO|TBD|FIXME|XXX", text)
    assert {block.language for block in blocks(text)} <= {"sh", "promql"}
    assert text.count("```") == 2 * len([*blocks(text)])


@pytest.mark.parametrize("alert", [*alerts(Site())], ids=lambda alert: alert.name)
def test_numbers_are_those_of_the_alert(alert: Alert) -> None:
    """Each threshold of the alert is named, and each default is what it is said to be."""
    defaults = numbers(Site(), alert.name)
    found = dict(NUMBER.findall(RUNBOOKS[alert.name]))
    assert found == {each: defaults[each] for each in found}
    assert {name for name, one in thresholds() if one in alert.thresholds} <= {*found}


def test_a_site_has_its_own_numbers() -> None:
    """In the runbooks that are written; the default beside them, and nothing else is changed. An alert that is off needs none."""
    settings = AlertSettings(severity=AlertSeverity.INFO, wait="1h")
    off = AlertSettings(severity=AlertSeverity.INFO, wait="1m", enabled=False)
    site = Site(thresholds={STORM: 70.0}, alerts={"KafkaQuotaThrottleStorm": settings, "KafkaQuotaRuleChanged": off})
    theirs = dict(runbooks(site))
    name = "KafkaQuotaThrottleStorm"
    assert "`STORM` (70 entities, default 50 entities)" in theirs[name]
    assert "`for` (1h, default 15m)" in theirs[name]
    assert "`STORM` (70 entities," in theirs["KafkaQuotaProduceThrottled"]
    assert theirs["KafkaQuotaReadsSlow"] == RUNBOOKS["KafkaQuotaReadsSlow"]
    assert {*RUNBOOKS} - {*theirs} == {"KafkaQuotaRuleChanged"}


@pytest.mark.parametrize("query", QUERIES)
def test_query_asks_for_what_there_is(query: str) -> None:
    """Every query parses, and its names and labels exist: also where clusters share a Prometheus."""
    found = list(selectors(query))
    assert found
    for selector in found:
        assert selector.name in FAMILIES or selector.name in RECORDED
        assert matched_labels(selector) <= labels_of(str(selector.name))
    assert all(labels.startswith(CLUSTER) for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", query))
    assert "topk(" not in query
    labels_of(query)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_one_that_is_tried(command: str) -> None:
    """Every command is our own or one of Kafka's that the real tests run."""
    program, *arguments = shlex.split(command)
    assert program == "quotascope" or program in CLASSES
    keys = [
        key.partition("=")[0]
        for option, value in pairwise(arguments)
        if option in {"--add-config", "--delete-config"}
        for key in value.split(",")
    ]
    assert set(keys) <= KEYS
