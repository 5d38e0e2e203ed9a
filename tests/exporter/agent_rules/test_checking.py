"""The report on pages of an agent, by its configuration: published rules, rules that lose something, and additions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from tests.cluster.agents import CONFLUENT_RULES, RULES
from tests.commands import run
from tests.exporter.agent_rules.checked import CLIENT, KRAFT, TWO_RULES, TYPE, checked

from quotascope.exporter.agent_rules import Checked, check, configurations
from quotascope.exporter.coverage import EntityKind
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.rules import jmx_exporter_rules

USER, CLIENT_ID, PAIR = EntityKind


def kinds(report: Checked, name: str) -> set[EntityKind | None]:
    return {fact.kind for fact in report.facts if fact.name == name and fact.is_shown}


@pytest.mark.parametrize(
    ("rules", "dialect", "produce", "mutations", "nodes"),
    [
        (jmx_exporter_rules(), "quotascope_rules", {*EntityKind}, {*EntityKind}, {"node id", "produce delay queue"}),
        ("", "jmx_default", {*EntityKind}, {*EntityKind}, {"node id", "produce delay queue"}),
        (
            "lowercaseOutputName: true\nlowercaseOutputLabelNames: true\nrules: [{pattern: '.*'}]",
            "jmx_default",
            {*EntityKind},
            {*EntityKind},
            {"node id", "produce delay queue"},
        ),
        (RULES.read_text(), "kafka_2_0_0", {*EntityKind}, {*EntityKind}, {"node id"}),
        (
            f"lowercaseOutputLabelNames: true{TWO_RULES}",
            "kafka_2_0_0",
            {CLIENT_ID, PAIR},
            {CLIENT_ID, PAIR},
            {"node id"},
        ),
        (CONFLUENT_RULES.read_text(), "confluent", {*EntityKind}, set(), set()),
        (CLIENT, "kafka_2_0_0", {PAIR}, set(), set()),
        (TYPE, "kafka_2_0_0", {PAIR}, set(), set()),
    ],
    ids=["own", "empty", "lowercase", "kafka-2_0_0", "until-2023", "confluent", "client", "type"],
)  # fmt: skip
def test_rules_show_what_they_are_for(
    rules: str, dialect: str, produce: set[EntityKind], mutations: set[EntityKind], nodes: set[str]
) -> None:
    """Rules show their usage under any names, also for client names that Java quotes."""
    report = checked(rules)
    assert (report.dialect, report.refused) == (dialect, "")
    assert kinds(report, "produce usage") == kinds(report, "fetch usage") == produce
    assert kinds(report, "controller mutation usage") == mutations
    node_facts = {fact.name for fact in report.facts if fact.kind is None and fact.is_shown}
    assert node_facts & {"node id", "produce delay queue"} == nodes
    assert all(fact.unusual for fact in report.facts if fact.is_shown)
    assert report.complete == (not report.additions)


@pytest.mark.parametrize(
    "rules", [TWO_RULES, CLIENT, TYPE, KRAFT, RULES.read_text(), CONFLUENT_RULES.read_text(), "rules: []"]
)
def test_with_the_additions_nothing_is_missing(rules: str) -> None:
    """The proposed additions, put before the other rules, leave nothing missing."""
    report = checked(rules)
    assert not report.complete
    document = yaml.safe_load(rules)
    document["rules"] = yaml.safe_load(report.additions) + document["rules"]
    for key in {"includeObjectNames", "whitelistObjectNames"} & document.keys():
        document[key] += report.object_names
    for key in {"excludeObjectNames", "blacklistObjectNames"} & document.keys():
        document[key] = [name for name in document[key] if name not in report.wrongly_excluded]
    mended = checked(yaml.safe_dump(document))
    assert mended.complete, [fact for fact in mended.facts if not fact.is_shown or not fact.unusual]
    assert not mended.additions


LOST: Mapping[str, tuple[str, str]] = {
    "entities in names": (KRAFT, "into names of metrics"),
    "a user in no label": (
        (
            "rules: [{pattern: 'kafka.server<type=(.+), user=(.+)><>byte-rate', name: kafka_quota_byte_rate, labels: "
            "{type: $1, user: same, by: $2}}]"
        ),
        "label by tells series apart",
    ),
    "no labels at all": (
        (
            "rules:\n- {pattern: 'kafka.server<type=Produce, user=alice><>byte-rate', name: "
            "kafka_server_produce_byte_rate, type: GAUGE}"
        ),
        "no label for a user or a client-id",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rules", "reason"), LOST.values(), ids=LOST)
def test_rules_that_lose_clients_are_refused(rules: str, reason: str) -> None:
    report = checked(rules)
    assert reason in report.refused
    assert not any(fact.is_shown for fact in report.facts)


def test_a_series_of_several_beans_shows_none() -> None:
    """A series of several beans shows none of them, even where a broker has only one of the beans."""
    report = checked(
        "rules: [{pattern: 'kafka.server<type=(.+), user=(.+)><>([a-z-]+)', name: kafka_server_$1_$3, type: GAUGE}]"
    )
    assert not any(fact.is_shown for fact in report.facts)
    assert any("makes one series of several beans" in fact.reason for fact in report.facts)
    assert any("_objectname" in remark for remark in report.remarks)


def test_a_factor_that_the_name_does_not_tell_is_a_wrong_number() -> None:
    """A rule that multiplies a number is wrong unless the name of the metric ends with the unit of the product."""
    rule = (
        "rules:\n- {{pattern: 'kafka.server<type=(.+), user=(.+)><>throttle-time', name: {}, valueFactor: 0.001, "
        "labels: {{type: $1, user: $2}}}}"
    )
    wrong, right = (checked(rule.format(f"kafka_server_quota_throttle_time{end}")) for end in ("", "_seconds"))
    assert kinds(wrong, "produce throttle time") == set()
    assert any("changes its number" in fact.reason for fact in wrong.facts)
    assert kinds(right, "produce throttle time") >= {USER}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("includeObjectNames: ['java.lang:*']", "includeObjectNames does not name the bean"),
        ("whitelistObjectNames: ['kafka.server:type=Fetch,*']", "includeObjectNames does not name the bean"),
        (
            "blacklistObjectNames: ['kafka.server:type=Pro*,user=*,*']",
            "excludeObjectNames has kafka.server:type=Pro*,user=*,*",
        ),
        (
            "excludeObjectNameAttributes: {'kafka.server:type=Produce,user=alice': [byte-rate]}",
            "excludeObjectNameAttributes has",
        ),
        (
            "includeObjectNameAttributes: {'kafka.server:type=Fetch': [queue-size]}",
            "includeObjectNameAttributes does not name it",
        ),
        (
            "rules: [{pattern: 'kafka.server<type=Produce, user=(.+)><>byte-rate', name: ''}]",
            "rule 1 (kafka.server<type=Produce, user=(.+)><>byte-rate) takes it: its name is empty",
        ),
    ],
)  # fmt: skip
def test_it_is_said_why_a_bean_is_not_shown(options: str, reason: str) -> None:
    report = checked(options)
    facts = [fact for fact in report.facts if fact.name == "produce usage" and fact.kind is USER]
    assert facts[0].reason.startswith(reason)
    assert not facts[0].is_shown


CONFIG_MAP = f"""
kind: ConfigMap
metadata: {{name: kafka-metrics}}
data:
  zookeeper.yml: |
    rules:
    - {{pattern: 'org.apache.ZooKeeperService<name0=(.+)><>(\\w+)', name: zookeeper_$2}}
  kafka.yml: |
{"".join(f"    {line}{chr(10)}" for line in TYPE.splitlines())}
"""
VALUES = {"metrics": {"jmx": {"config": yaml.safe_load(TYPE)}}, "other": [{"rules": "no"}]}


@pytest.mark.parametrize(
    ("text", "place"), [(CONFIG_MAP, "data.kafka.yml"), (yaml.safe_dump(VALUES), "metrics.jmx.config")]
)
def test_a_configuration_within_others_is_found(text: str, place: str) -> None:
    (config,) = configurations(text, "file")
    assert config.place == place
    assert kinds(check(config), "produce usage") == {PAIR}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "is not YAML"),
        ("- 1", "holds no configuration of jmx_exporter"),
        ("a: 1", "holds no configuration of jmx_exporter"),
        ("rules: 5", "must be a list"),
        ("rules: [5]", "rule 1: is not a mapping"),
        ("rules: [{name: a}]", "rule 1: `name` needs a `pattern`"),
        ("rules: [{pattern: a, labels: {b: c}}]", "need a `name`"),
        ("rules: [{pattern: a, name: b, labels: {c: 1}}]", "in quotes"),
        ("rules: [{pattern: 'a('}]", "no regular expression"),
        (
            "rules: [{pattern: kafka.server, name: $1}]",
            "rule 1: '$1' has $1, but the pattern no such group; scrapes fail",
        ),
        ("rules: [{pattern: a, valueFactor: much}]", "not a number"),
        ("lowercaseOutputName: 1", "true or false"),
        ("includeObjectNames: [kafka]", "is not the name of MBeans"),
    ],
)
def test_what_an_agent_would_not_start_with_is_wrong_input(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="file") as caught:
        [check(config) for config in configurations(text, "file")]
    assert problem in str(caught.value)
    file = tmp_path / "rules.yml"
    file.write_text(text)
    done = run("rules", "check", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    """The command reports as text and as JSON, with exit code 1; our own rules lack nothing."""
    file = tmp_path / "rules.yml"
    file.write_text(TWO_RULES)
    done = run("rules", "check", file)
    assert done.returncode == 1
    assert "Put these rules before the others:\n- pattern: '^kafka" in done.stdout
    assert "Not shown, because no rule matches:" in done.stdout
    document = json.loads(run("rules", "check", file, "--json").stdout)
    assert document["complete"] is False
    (report,) = document["configurations"]
    missing = {(fact["name"], fact["entities"]) for fact in report["facts"] if not fact["shown"]}
    assert ("produce usage", "users") in missing
    assert ("produce usage", "client-ids") not in missing
    assert yaml.safe_load(report["additions"])
    file.write_text(jmx_exporter_rules())
    done = run("rules", "check", file)
    assert (done.returncode, "Everything is shown." in done.stdout) == (0, True)
    assert run("rules", "check", tmp_path / "none").returncode == 2
