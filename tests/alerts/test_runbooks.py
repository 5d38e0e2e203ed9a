"""Each alert has a complete runbook, with queries that Prometheus accepts."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

import pytest
from tests.alerts.commands import BLOCKS, COMMANDS, RUNBOOKS
from tests.alerts.expressions import CLUSTER, FAMILIES, RECORDED, labels_of, matched_labels, selectors
from tests.alerts.runbook_parts import HEADINGS, blocks
from tests.cluster.tools import CLASSES

from quotascope.alerts import Site
from quotascope.alerts.render import alerts, thresholds_of
from quotascope.alerts.runbook import COMPARED, NUMBER, numbers, runbooks, with_defaults
from quotascope.alerts.settings import AlertSettings, AlertSeverity, Profile
from quotascope.alerts.thresholds import HEAVY_SHARE, NEAR_LIMIT, STORM

KEYS = {
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    *("leader.replication.throttled.rate", "follower.replication.throttled.rate"),
    *("connection_creation_rate", "max.connection.creation.rate"),
}
QUERIES = [pytest.param(block.text.strip(), id=name) for name, block in BLOCKS if block.language == "promql"]


def test_every_alert_has_a_runbook_and_the_other_way_round() -> None:
    """Each alert has a runbook, and each runbook an alert."""
    assert [*RUNBOOKS] == sorted(rule["alert"] for rule in alerts(Site()))


@pytest.mark.parametrize("name", RUNBOOKS)
def test_runbook_is_complete(name: str) -> None:
    """A runbook has a title, the four parts in order, exceptions, a query or command to begin with, and no gap."""
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


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_numbers_are_those_of_the_alert(alert: str) -> None:
    """A runbook names each threshold of its alert, with the right default."""
    defaults = numbers(Site(), alert)
    named = dict(NUMBER.findall(RUNBOOKS[alert]))
    assert named == {name: defaults[name] for name in named}
    assert {*thresholds_of(alert)} <= {*named}
    for value, name in COMPARED.findall(RUNBOOKS[alert]):
        assert defaults[name].partition(" ")[0] == value


def test_queries_compare_with_the_numbers_of_a_site() -> None:
    """A query that names a threshold has the default in the file, and the site's number for a site."""
    name = "KafkaQuotaManyNearLimit"
    assert "avg30m > 0.9) # NEAR_LIMIT\n" in RUNBOOKS[name]
    theirs = dict(runbooks(Site(profile=Profile.ALL, thresholds={NEAR_LIMIT: 0.8})))[name]
    assert "avg30m > 0.8) # NEAR_LIMIT\n" in theirs
    assert "avg30m > 0.9) # NEAR_LIMIT\n" in with_defaults(theirs, name)


def test_a_site_has_its_own_numbers() -> None:
    """Runbooks of a site have its numbers beside the defaults; an alert that is off has no runbook."""
    settings = AlertSettings(severity=AlertSeverity.INFO, wait="1h")
    off = AlertSettings(severity=AlertSeverity.INFO, wait="1m", enabled=False)
    site = Site(
        profile=Profile.ALL,
        thresholds={STORM: 70.0},
        alerts={"KafkaQuotaThrottleStorm": settings, "KafkaQuotaRuleChanged": off},
    )
    theirs = dict(runbooks(site))
    name = "KafkaQuotaThrottleStorm"
    assert "`STORM` (70 entities, default 50 entities)" in theirs[name]
    assert "`for` (1h, default 1m)" in theirs[name]
    assert "`STORM` (70 entities," in theirs["KafkaQuotaProduceThrottled"]
    assert theirs["KafkaQuotaSourceDown"] == RUNBOOKS["KafkaQuotaSourceDown"]
    assert {*RUNBOOKS} - {*theirs} == {"KafkaQuotaRuleChanged", "KafkaQuotaClientThrottled"}


def test_numbers_of_a_site_have_four_digits() -> None:
    """A runbook has the numbers of a site rounded to four digits, as people read them."""
    site = Site(profile=Profile.ALL, thresholds={HEAVY_SHARE: 2 / 3, STORM: 100 / 3})
    assert numbers(site, "KafkaQuotaHeavyClientWithoutLimit")["HEAVY_SHARE"] == "0.6667 ratio"
    assert "`STORM` (33.33 entities, default 50 entities)" in dict(runbooks(site))["KafkaQuotaThrottleStorm"]


def test_a_runbook_says_which_profile_has_an_alert() -> None:
    """A runbook has the profile of its alert and of alerts that it names; one of a site marks alerts not written."""
    only_all, of_both = RUNBOOKS["KafkaQuotaReadsSlow"], RUNBOOKS["KafkaQuotaThrottleStorm"]
    assert only_all.splitlines()[2] == (
        "Rules have this alert with `quotascope alerts write --profile all`, or where it is enabled."
    )
    assert "--profile core" in RUNBOOKS["KafkaQuotaClientThrottled"]
    assert "--profile" not in of_both
    assert "`KafkaQuotaManyClientsThrottled` (profile `all`)" in of_both
    assert "`KafkaQuotaThrottleStorm` fires" in RUNBOOKS["KafkaQuotaProduceThrottled"]
    core = dict(runbooks(Site()))
    assert len(core) == 14
    assert "`KafkaQuotaManyClientsThrottled` (not written)" in core["KafkaQuotaThrottleStorm"]
    assert (
        "`KafkaQuotaManyClientsThrottled` does" in dict(runbooks(Site(profile=Profile.ALL)))["KafkaQuotaThrottleStorm"]
    )


@pytest.mark.parametrize("query", QUERIES)
def test_query_asks_for_what_there_is(query: str) -> None:
    """Every query parses, its names and labels exist, and it keeps clusters of one Prometheus apart."""
    query_selectors = list(selectors(query))
    assert query_selectors
    for selector in query_selectors:
        assert selector.name in FAMILIES or selector.name in RECORDED
        assert matched_labels(selector) <= labels_of(str(selector.name))
    assert all(labels.startswith(CLUSTER) for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", query))
    assert "topk(" not in query
    labels_of(query)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_one_that_is_tried(command: str) -> None:
    """Every command is quotascope's or one of Kafka's that the real tests run."""
    program, *arguments = shlex.split(command)
    assert program == "quotascope" or program in CLASSES
    keys = [
        key.partition("=")[0]
        for option, value in pairwise(arguments)
        if option in {"--add-config", "--delete-config"}
        for key in value.split(",")
    ]
    assert set(keys) <= KEYS
