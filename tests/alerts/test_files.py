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
    files = [path for path in GENERATED.rglob("*") if path.is_file()]
    found = {str(path.relative_to(GENERATED)): path.read_text(encoding="utf-8") for path in files}
    assert found == expected, "run: make docs"


def extras(folder: Path) -> Extras:
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


def test_only_what_is_asked_for_is_written(tmp_path: Path) -> None:
    """Rules in a folder that is made; the example, the resource and the runbooks where they are asked for."""
    written = write(tmp_path / "new" / "rules", SITE)
    found = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {*written} == found
    assert {path.name for path in found} == {*rule_files(SITE)}
    written = write(tmp_path / "rules", SITE, extras(tmp_path / "other"))
    texts = {"alertmanager.yaml": alertmanager_file(SITE), "kubernetes/rules.yaml": operator_file(SITE)}
    texts |= {f"runbooks/{name}.md": text for name, text in runbooks()}
    others = [path for path in written if path.is_relative_to(tmp_path / "other")]
    assert {str(path.relative_to(tmp_path / "other")): path.read_text("utf-8") for path in others} == texts


@pytest.mark.parametrize("option", ["alertmanager", "prometheus_rule", "runbooks"])
def test_nothing_else_goes_into_the_folder_of_the_rules(tmp_path: Path, option: str) -> None:
    """Prometheus would refuse all of its rules."""
    inside = {"runbooks": tmp_path / "runbooks", "alertmanager": tmp_path / "x.yaml"}
    into = inside.get(option, tmp_path / "rules.d" / ".." / "x.yaml")
    (tmp_path / "rules.d").mkdir()
    with pytest.raises(CannotWrite, match="choose another folder"):
        write(tmp_path, SITE, Extras(**{option: into}))
    assert [path.name for path in tmp_path.iterdir()] == ["rules.d"]


def test_what_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """Two outputs in one file, and a file in place of the folder."""
    one = tmp_path / "x.yaml"
    with pytest.raises(CannotWrite, match="two outputs"):
        write(tmp_path / "rules", SITE, Extras(alertmanager=one, prometheus_rule=one))
    (tmp_path / "taken").write_text("")
    with pytest.raises(CannotWrite, match=r"taken/quotascope-recording.* is not a fold"):
        write(tmp_path / "taken", Site())


def written_alerts(site: Site) -> list[dict[str, Any]]:
    groups = yaml.safe_load(rule_files(site)["quotascope-alerts.yaml"])["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_no_rule_leads_nowhere() -> None:
    """Without an address there is no link, and no address is made up."""
    for rule in written_alerts(Site()):
        assert {*rule["annotations"]} == {"summary", "description"}
    written = "".join(path.read_text() for path in GENERATED.rglob("*.yaml"))
    assert "http" not in written


def test_a_site_shows_in_all_rules() -> None:
    """Label, links and the pattern of system users are the site's."""
    for rule in written_alerts(SITE):
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
        *(("cluster_label", value) for value in ("my-cluster", "", "broker", "instance")),
        *(("grafana_url", value) for value in ("grafana", "https://grafana/{{ x }}")),
        *(("runbook_url", value) for value in ("https://wiki/runbooks", "wiki/{alert}")),
        *(("system_users", value) for value in ("(unclosed", "(?!app).*", r"(a)\1", r"ops\Z", "")),
        *(("system_users", value) for value in (r"\N{BULLET}", "(?x) ops", "(?im-s:ops)(?#all)")),
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
    groups = [each for name in ("recording", "alerts") for each in files[f"quotascope-{name}.yaml"]["groups"]]
    assert (resource["kind"], resource["spec"]["groups"]) == ("PrometheusRule", groups)


@pytest.mark.real
@pytest.mark.parametrize("site", [Site(), SITE], ids=lambda site: site.cluster_label)
def test_the_real_tools_accept_the_files(site: Site, tmp_path: Path) -> None:
    """`promtool check rules`, with its lint for duplicates, and `amtool check-config` find nothing."""
    write(tmp_path, site)
    for name in ("quotascope-recording.yaml", "quotascope-alerts.yaml"):
        assert "SUCCESS" in said("promtool", "check", "rules", tmp_path / name)
    example = tmp_path / "alertmanager.yaml"
    example.write_text(alertmanager_file(site))
    assert "SUCCESS" in said("amtool", "check-config", example)


def routed(*options: str) -> str:
    """Where the example sends an alert with these labels."""
    example = GENERATED / "alertmanager" / "alertmanager-example.yaml"
    return said("amtool", "config", "routes", "test", f"--config.file={example}", *options).strip()


@pytest.mark.real
@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_a_receiver(name: str) -> None:
    """`amtool config routes test`: critical is a page, warnings are tickets, the rest is for a chat room."""
    severity, scope = SPECIFIED[name].severity, SPECIFIED[name].scope
    receiver = {"critical": "on-call", "warning": "tickets", "info": "chat"}[severity]
    labels = f"alertname={name}", f"severity={severity}", f"scope={scope}", "cluster=paris"
    assert receiver in routed(f"--verify.receivers={receiver}", *labels)


@pytest.mark.real
def test_alerts_of_others_are_left_alone() -> None:
    """Our routes take only our own alerts."""
    assert routed("alertname=NodeDown", "severity=critical") == "unrouted"


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
