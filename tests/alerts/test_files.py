"""The files that are written: current, accepted by the real tools, and sent where they should be."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.alerts.promtool import ALERTS, GENERATED
from tests.alerts.specification import SPECIFIED

from quotascope.alerts import CannotWrite, InvalidSite, Site
from quotascope.alerts.files import Extras, alertmanager_file, operator_file, rule_files, write
from quotascope.alerts.mixin import mixin_file
from quotascope.alerts.runbook import runbooks
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

SITE = Site(
    cluster_label="kafka_cluster",
    grafana_url="http://grafana:3000/",
    runbook_url="https://wiki/kafka/{alert}",
    system_users="ops-.*",
)


def said(*command: str | Path) -> str:
    """What a tool says; it must end well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_generated_files_are_current() -> None:
    """What is committed is what the code writes."""
    expected = {
        **rule_files(Site()),
        "alertmanager/alertmanager-example.yaml": alertmanager_file(Site()),
        "kubernetes/quotascope-prometheusrule.yaml": operator_file(Site()),
        "mixin/mixin.libsonnet": mixin_file(Site(), lambda site: grafana_dashboards(Scope(site=site))),
    }
    found = {
        str(path.relative_to(GENERATED)): path.read_text(encoding="utf-8")
        for path in GENERATED.rglob("*")
        if path.is_file()
    }
    assert found == expected, "run: make docs"


def extras(folder: Path) -> Extras:
    """All that can be asked for."""
    return Extras(
        alertmanager=folder / "alertmanager.yaml",
        prometheus_rule=folder / "kubernetes" / "rules.yaml",
        runbooks=folder / "runbooks",
    )


@pytest.mark.real
@pytest.mark.parametrize("pattern", ["*.yaml", "*.yml", "*"])
def test_prometheus_takes_the_whole_folder(tmp_path: Path, pattern: str) -> None:
    """`promtool check config` with all of the folder as rule_files: nothing but rules is in it."""
    folder = tmp_path / "rules"
    write(folder, SITE, extras(tmp_path))
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"rule_files": [str(folder / pattern)]}))
    answer = said("promtool", "check", "config", config)
    assert answer.count("rules found") == (0 if pattern == "*.yml" else 2)


def test_only_rules_are_written_unasked(tmp_path: Path) -> None:
    """Rules in a folder that is made, and nothing else anywhere."""
    written = write(tmp_path / "new" / "rules", SITE)
    found = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {*written} == found
    assert {path.name for path in found} == {*rule_files(SITE)}


def test_everything_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    """The example, the resource and the runbooks, each with its content."""
    asked = extras(tmp_path / "other")
    written = write(tmp_path / "rules", SITE, asked)
    assert asked.alertmanager is not None
    assert asked.alertmanager.read_text("utf-8") == alertmanager_file(SITE)
    assert asked.prometheus_rule is not None
    assert asked.prometheus_rule.read_text("utf-8") == operator_file(SITE)
    for name, text in runbooks():
        path = tmp_path / "other" / "runbooks" / f"{name}.md"
        assert path in written
        assert path.read_text("utf-8") == text


@pytest.mark.parametrize("option", ["alertmanager", "prometheus_rule", "runbooks"])
def test_nothing_else_goes_into_the_folder_of_the_rules(tmp_path: Path, option: str) -> None:
    """Prometheus would refuse all of its rules."""
    inside = {"runbooks": tmp_path / "runbooks", "alertmanager": tmp_path / "x.yaml"}
    into = inside.get(option, tmp_path / "rules.d" / ".." / "x.yaml")
    (tmp_path / "rules.d").mkdir()
    with pytest.raises(CannotWrite, match="choose another folder"):
        write(tmp_path, SITE, Extras(**{option: into}))
    assert [path.name for path in tmp_path.iterdir()] == ["rules.d"]


def test_two_outputs_are_not_one_file(tmp_path: Path) -> None:
    """One would take the place of the other."""
    one = tmp_path / "x.yaml"
    with pytest.raises(CannotWrite, match="two outputs"):
        write(tmp_path / "rules", SITE, Extras(alertmanager=one, prometheus_rule=one))


def test_a_folder_that_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    """A file in place of the folder is a message, not a traceback."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(CannotWrite, match=r"taken/quotascope-recording.* is not a fold"):
        write(tmp_path / "taken", Site())


def test_no_rule_leads_nowhere() -> None:
    """Without an address there is no link, and no address is made up."""
    rules = yaml.safe_load(rule_files(Site())["quotascope-alerts.yaml"])["groups"]
    for rule in (rule for group in rules for rule in group["rules"]):
        assert {*rule["annotations"]} == {"summary", "description"}
    written = "".join(path.read_text() for path in GENERATED.rglob("*.yaml"))
    assert "http" not in written


def test_a_site_shows_in_all_rules() -> None:
    """Label, links and the pattern of system users are the site's."""
    rules = yaml.safe_load(rule_files(SITE)["quotascope-alerts.yaml"])["groups"]
    for rule in (rule for group in rules for rule in group["rules"]):
        notes = rule["annotations"]
        assert notes["runbook_url"] == f"https://wiki/kafka/{rule['alert']}"
        assert notes["dashboard_url"].startswith("http://grafana:3000/d/quotascope-")
        assert "$labels.kafka_cluster" in notes["description"]
        assert "$labels.cluster" not in str(rule)
    assert 'user=~"ops-.*"' in rule_files(SITE)["quotascope-alerts.yaml"]
    example = yaml.safe_load(alertmanager_file(SITE))
    assert all("kafka_cluster" in rule["equal"] for rule in example["inhibit_rules"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cluster_label", "my-cluster"),
        ("cluster_label", ""),
        ("cluster_label", "broker"),
        ("cluster_label", "instance"),
        ("grafana_url", "grafana"),
        ("grafana_url", "https://grafana/{{ x }}"),
        ("runbook_url", "https://wiki/runbooks"),
        ("runbook_url", "wiki/{alert}"),
        ("system_users", "(unclosed"),
        ("system_users", "(?!app).*"),
        ("system_users", r"(a)\1"),
        ("system_users", r"ops\Z"),
        ("system_users", r"\N{BULLET}"),
        ("system_users", "(?x) ops"),
        ("system_users", "(?im-s:ops)(?#all)"),
        ("system_users", ""),
    ],
)
def test_a_site_that_cannot_work_is_refused(field: str, value: str) -> None:
    """A mistake is reported when the rules are written, not by Prometheus at night."""
    wrong: dict[str, Any] = {field: value}
    with pytest.raises(InvalidSite, match=r"is not|cannot be"):
        Site(**wrong)


def test_the_operators_resource_has_the_same_groups() -> None:
    """Who uses the operator gets the same rules."""
    files = {name: yaml.safe_load(text) for name, text in rule_files(Site()).items()}
    resource = yaml.safe_load(operator_file(Site()))
    assert resource["kind"] == "PrometheusRule"
    assert resource["spec"]["groups"] == [
        *files["quotascope-recording.yaml"]["groups"],
        *files["quotascope-alerts.yaml"]["groups"],
    ]


@pytest.mark.real
@pytest.mark.parametrize("site", [Site(), SITE], ids=lambda site: site.cluster_label)
def test_promtool_accepts_the_rules(site: Site, tmp_path: Path) -> None:
    """`promtool check rules`, with its lint for duplicates, finds nothing."""
    write(tmp_path, site)
    for name in ("quotascope-recording.yaml", "quotascope-alerts.yaml"):
        assert "SUCCESS" in said("promtool", "check", "rules", tmp_path / name)


@pytest.mark.real
@pytest.mark.parametrize("site", [Site(), SITE], ids=lambda site: site.cluster_label)
def test_amtool_accepts_the_example(site: Site, tmp_path: Path) -> None:
    """`amtool check-config` finds nothing."""
    example = tmp_path / "alertmanager.yaml"
    example.write_text(alertmanager_file(site))
    answer = said("amtool", "check-config", example)
    assert "SUCCESS" in answer


@pytest.mark.real
@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_a_receiver(name: str) -> None:
    """`amtool config routes test`: critical is a page, warnings are tickets, the rest is for a chat room."""
    receivers = {"critical": "on-call", "warning": "tickets", "info": "chat"}
    severity = SPECIFIED[name].severity
    answer = said(
        *("amtool", "config", "routes", "test"),
        f"--config.file={GENERATED / 'alertmanager' / 'alertmanager-example.yaml'}",
        f"--verify.receivers={receivers[severity]}",
        f"alertname={name}",
        f"severity={severity}",
        f"scope={SPECIFIED[name].scope}",
        "cluster=paris",
    )
    assert receivers[severity] in answer


@pytest.mark.real
def test_alerts_of_others_are_left_alone() -> None:
    """Our routes take only our own alerts."""
    answer = said(
        *("amtool", "config", "routes", "test"),
        f"--config.file={GENERATED / 'alertmanager' / 'alertmanager-example.yaml'}",
        *("alertname=NodeDown", "severity=critical"),
    )
    assert answer.strip() == "unrouted"


def test_inhibitions_name_alerts_that_exist() -> None:
    """A renamed alert would no longer silence what it should."""
    example = yaml.safe_load(alertmanager_file(Site()))
    for rule in example["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, _, value = matcher.partition("=")
            if label != "alertname":
                continue
            pattern = value.removeprefix("~").strip('"')
            assert any(re.fullmatch(pattern, name) for name in ALERTS)
            for part in re.findall(r"KafkaQuota\w+", pattern):
                assert any(name.startswith(part) for name in ALERTS)
