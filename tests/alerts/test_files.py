"""The files that are written: current, accepted by the real tools, and sent where they should be."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.alerts.promtool import ALERTS, GENERATED

from quotascope.alerts import CannotWrite, InvalidSite, Site
from quotascope.alerts.runbook import runbooks
from quotascope.alerts.write import rule_files, write

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
    """What is committed is what the code writes: `quotascope alerts write alerts/generated`."""
    expected = rule_files(Site())
    found = {
        path.name: path.read_text(encoding="utf-8") for path in GENERATED.iterdir()
    }
    assert found == expected, "run: make docs"


def test_everything_is_written(tmp_path: Path) -> None:
    """Rules, the example and the runbooks; and each file is told."""
    written = list(write(tmp_path / "new" / "rules", SITE))
    names = {str(path.relative_to(tmp_path / "new" / "rules")) for path in written}
    assert names == {
        "quotascope-recording.yaml",
        "quotascope-alerts.yaml",
        "quotascope-prometheusrule.yaml",
        "alertmanager-example.yaml",
        *(f"runbooks/{name}.md" for name, _ in runbooks()),
    }
    assert all(path.read_text(encoding="utf-8") for path in written)


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    """A file in place of the folder is a message, not a traceback."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(CannotWrite, match="taken/quotascope-recording"):
        list(write(tmp_path / "taken", Site()))


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
    example = yaml.safe_load(rule_files(SITE)["alertmanager-example.yaml"])
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
        ("system_users", ""),
    ],
)
def test_a_site_that_cannot_work_is_refused(field: str, value: str) -> None:
    """A mistake is told when the rules are written, not by Prometheus at night."""
    with pytest.raises(InvalidSite, match=r"is not|cannot be"):
        Site(**{field: value})


def test_the_operators_resource_has_the_same_groups() -> None:
    """Who uses the operator gets the same rules."""
    files = {name: yaml.safe_load(text) for name, text in rule_files(Site()).items()}
    resource = files["quotascope-prometheusrule.yaml"]
    assert resource["kind"] == "PrometheusRule"
    assert resource["spec"]["groups"] == [
        *files["quotascope-recording.yaml"]["groups"],
        *files["quotascope-alerts.yaml"]["groups"],
    ]


@pytest.mark.real
@pytest.mark.parametrize("site", [Site(), SITE], ids=lambda site: site.cluster_label)
def test_promtool_accepts_the_rules(site: Site, tmp_path: Path) -> None:
    """`promtool check rules`, with its lint for duplicates, finds nothing."""
    list(write(tmp_path, site))
    for name in ("quotascope-recording.yaml", "quotascope-alerts.yaml"):
        assert "SUCCESS" in said("promtool", "check", "rules", tmp_path / name)


@pytest.mark.real
@pytest.mark.parametrize("site", [Site(), SITE], ids=lambda site: site.cluster_label)
def test_amtool_accepts_the_example(site: Site, tmp_path: Path) -> None:
    """`amtool check-config` finds nothing."""
    list(write(tmp_path, site))
    answer = said("amtool", "check-config", tmp_path / "alertmanager-example.yaml")
    assert "SUCCESS" in answer


@pytest.mark.real
@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_a_receiver(name: str) -> None:
    """`amtool config routes test`: critical wakes somebody up, warnings are tickets, the rest is for a chat room."""
    receivers = {"critical": "on-call", "warning": "tickets", "info": "chat"}
    severity = ALERTS[name].severity.value
    answer = said(
        *("amtool", "config", "routes", "test"),
        f"--config.file={GENERATED / 'alertmanager-example.yaml'}",
        f"--verify.receivers={receivers[severity]}",
        f"alertname={name}",
        f"severity={severity}",
        f"scope={ALERTS[name].scope.value}",
        "cluster=paris",
    )
    assert receivers[severity] in answer


@pytest.mark.real
def test_alerts_of_others_are_left_alone() -> None:
    """Our routes take only our own alerts."""
    answer = said(
        *("amtool", "config", "routes", "test"),
        f"--config.file={GENERATED / 'alertmanager-example.yaml'}",
        *("alertname=NodeDown", "severity=critical"),
    )
    assert answer.strip() == "nobody"


def test_inhibitions_name_alerts_that_exist() -> None:
    """A renamed alert would no longer silence what it should."""
    example = yaml.safe_load(rule_files(Site())["alertmanager-example.yaml"])
    for rule in example["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, _, value = matcher.partition("=")
            if label != "alertname":
                continue
            pattern = value.removeprefix("~").strip('"')
            assert any(re.fullmatch(pattern, name) for name in ALERTS)
            for part in re.findall(r"KafkaQuota\w+", pattern):
                assert any(name.startswith(part) for name in ALERTS)
