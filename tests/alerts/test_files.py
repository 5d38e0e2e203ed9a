"""Written files: current, accepted by the real tools, and routed to the right receivers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.alerts.expressions import EVERYTHING
from tests.alerts.promtool import ALERTMANAGER, ALERTS, GENERATED

from quotascope.alerts import CannotWrite, InvalidSite, Site, thresholds
from quotascope.alerts.files import Extras, notification_templates, operator_file, rule_files, write
from quotascope.alerts.render import TEXTS, text
from quotascope.alerts.runbook import runbooks
from quotascope.alerts.settings import AlertSettings, AlertSeverity, Profile
from quotascope.alerts.thresholds import CLIENT_TIMEOUT, HEAVY_SHARE, NEAR_LIMIT, SPIKE_ENTITIES

SITE = Site(
    cluster_label="kafka_cluster",
    grafana_url="http://grafana:3000/",
    runbook_url="https://wiki/kafka/{alert}",
    system_users="ops-.*",
    profile=Profile.ALL,
)


def output_of(*command: str | Path) -> str:
    """Return the output of a tool; fail if the tool does."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_generated_files_are_current() -> None:
    """Committed files are the ones that the code writes now."""
    expected = {**rule_files(Site())}
    expected["all/quotascope-alerts.yaml"] = rule_files(Site(profile=Profile.ALL))["quotascope-alerts.yaml"]
    files = [path for path in GENERATED.rglob("*") if path.is_file()]
    committed = {str(path.relative_to(GENERATED)): path.read_text(encoding="utf-8") for path in files}
    assert committed == expected, "run: make docs"


CORE = (
    *("ThrottleSpike", "ThrottleStorm", "ClientThrottled", "NearLimit", "ManyNearLimit", "MutationTokensExhausted"),
    *("BrokerSaturated", "ExporterAbsent", "RecordingRulesMissing", "SourceDown", "LimitsStale"),
)


def test_the_core_profile_has_about_ten_alerts() -> None:
    """The core has an alert on throttled clients for all quota types; objectives and settings change the selection."""
    assert [rule["alert"] for rule in written_alerts(Site())] == [f"KafkaQuota{name}" for name in CORE]
    every = {rule["alert"] for rule in written_alerts(Site(profile=Profile.ALL))}
    budgets = {name for name in ALERTS if name.startswith("KafkaQuotaBudgetBurns")}
    assert every == {*ALERTS} - budgets - {"KafkaQuotaClientThrottled"}
    promised = {rule["alert"] for rule in written_alerts(Site(objectives=EVERYTHING.objectives))}
    assert promised == budgets | {f"KafkaQuota{name}" for name in CORE}
    on, off = (AlertSettings(enabled=enabled, severity=AlertSeverity.INFO, wait="1m") for enabled in (True, False))
    chosen = Site(alerts={"KafkaQuotaRuleChanged": on, "KafkaQuotaSourceDown": off})
    names = {rule["alert"] for rule in written_alerts(chosen)}
    assert names == {f"KafkaQuota{name}" for name in CORE} - {"KafkaQuotaSourceDown"} | {"KafkaQuotaRuleChanged"}


@pytest.mark.parametrize("name", CORE)
def test_guards_of_the_core_are_in_the_core(name: str) -> None:
    """An alert of the core that another one replaces, when there are many, has this one beside it in the core."""
    texts = {
        rule["alert"]: rule["expr"]
        for text_name in TEXTS
        for group in text(text_name)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    guards = {guard for line in re.findall(r"# if (.*)", texts[f"KafkaQuota{name}"]) for guard in line.split(", ")}
    assert {guard for guard in guards if guard in texts} <= {f"KafkaQuota{alert}" for alert in CORE}


def extras(folder: Path) -> Extras:
    return Extras(
        alertmanager=folder / "quotascope.tmpl",
        prometheus_rule=folder / "kubernetes" / "rules.yaml",
        runbooks=folder / "runbooks",
    )


@pytest.mark.real
@pytest.mark.parametrize("pattern", ["*.yaml", "*.yml", "*"])
def test_prometheus_takes_the_whole_folder(tmp_path: Path, pattern: str) -> None:
    """`promtool check config` accepts the folder as rule_files: it has only rules."""
    folder = tmp_path / "rules"
    write(folder, SITE, extras(tmp_path))
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"rule_files": [str(folder / pattern)]}))
    answer = output_of("promtool", "check", "config", config)
    assert answer.count("rules found") == (0 if pattern == "*.yml" else 2)


def test_only_what_is_asked_for_is_written(tmp_path: Path) -> None:
    """Rules are written into a new folder; templates, resource and runbooks only to the paths that are set."""
    written = write(tmp_path / "new" / "rules", SITE)
    paths = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {*written} == paths
    assert {path.name for path in paths} == {*rule_files(SITE)}
    written = write(tmp_path / "rules", SITE, extras(tmp_path / "other"))
    texts = {"quotascope.tmpl": notification_templates(SITE), "kubernetes/rules.yaml": operator_file(SITE)}
    assert ".CommonLabels.kafka_cluster" in texts["quotascope.tmpl"]
    texts |= {f"runbooks/{name}.md": text for name, text in runbooks(SITE)}
    extra_paths = [path for path in written if path.is_relative_to(tmp_path / "other")]
    assert {str(path.relative_to(tmp_path / "other")): path.read_text("utf-8") for path in extra_paths} == texts


@pytest.mark.parametrize("option", ["alertmanager", "prometheus_rule", "runbooks"])
def test_nothing_else_goes_into_the_folder_of_the_rules(tmp_path: Path, option: str) -> None:
    """Extras in the folder of the rules, all of which Prometheus would refuse, are errors."""
    inside = {"runbooks": tmp_path / "runbooks", "alertmanager": tmp_path / "x.yaml"}
    into = inside.get(option, tmp_path / "rules.d" / ".." / "x.yaml")
    (tmp_path / "rules.d").mkdir()
    with pytest.raises(CannotWrite, match="choose another folder"):
        write(tmp_path, SITE, Extras(**{option: into}))
    assert [path.name for path in tmp_path.iterdir()] == ["rules.d"]


def test_what_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """Two outputs with one path, and a file in place of the folder, are errors."""
    path = tmp_path / "x.yaml"
    with pytest.raises(CannotWrite, match="two outputs"):
        write(tmp_path / "rules", SITE, Extras(alertmanager=path, prometheus_rule=path))
    (tmp_path / "taken").write_text("")
    with pytest.raises(CannotWrite, match=r"taken/quotascope-recording.* is not a fold"):
        write(tmp_path / "taken", Site())


def written_alerts(site: Site) -> list[dict[str, Any]]:
    groups = yaml.safe_load(rule_files(site)["quotascope-alerts.yaml"])["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_no_rule_leads_nowhere() -> None:
    """Alerts have no links without addresses in the site."""
    for rule in written_alerts(Site()):
        assert {*rule["annotations"]} == {"summary", "description"}
    written = "".join(path.read_text() for path in GENERATED.rglob("*.yaml"))
    assert "http" not in written


def test_a_site_shows_in_all_rules() -> None:
    """Rules have the label of clusters, the links and the pattern of system users of the site."""
    for rule in written_alerts(SITE):
        notes = rule["annotations"]
        assert notes["runbook_url"] == f"https://wiki/kafka/{rule['alert']}"
        assert notes["dashboard_url"].startswith("http://grafana:3000/d/quotascope-")
        assert "$labels.kafka_cluster" in notes["description"]
        assert "$labels.cluster" not in str(rule)
    assert 'user=~"ops-.*"' in rule_files(SITE)["quotascope-alerts.yaml"]


def test_an_alert_on_a_team_keeps_the_label_of_its_series() -> None:
    """An alert on a team keeps its team's label, and a site's label `team` is on all other alerts."""
    site = Site(profile=Profile.ALL, labels={"team": "platform", "env": "prod"}, teams=EVERYTHING.teams)
    labels = {rule["alert"]: rule["labels"] for rule in written_alerts(site)}
    of_team = labels.pop("KafkaQuotaTeamOverBudget")
    assert of_team == {"severity": "warning", "scope": "team", "env": "prod"}
    assert labels["KafkaQuotaBrokerOversold"]["team"] == "platform"
    assert all("platform" in of_alert["team"] for of_alert in labels.values())


def test_descriptions_have_numbers_as_people_read_them() -> None:
    """Descriptions have thresholds with four digits, expressions have all digits."""
    digits = {NEAR_LIMIT: 0.07, HEAVY_SHARE: 2 / 3, CLIENT_TIMEOUT: 100 / 3, SPIKE_ENTITIES: 12345.0}
    rules = {rule["alert"][10:]: rule for rule in written_alerts(Site(profile=Profile.ALL, thresholds=digits))}
    expected = {
        "ManyNearLimit": ("was above 7%.", "> 0.07"),
        "HeavyClientWithoutLimit": ("has more than 66.67% of", "> 0.666666666666667"),
        "ThrottleBeyondClientTimeout": ("give up after 33.33 s:", "> 33.3333333333333"),
        "ThrottleSpike": ("At least 12345 clients", ">= 12345"),
    }
    for name, (number, comparison) in expected.items():
        assert number in rules[name]["annotations"]["description"]
        assert comparison in rules[name]["expr"]


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
    """Invalid settings are reported before the rules are written."""
    wrong: dict[str, Any] = {field: value}
    with pytest.raises(InvalidSite, match=r"is not|cannot be"):
        Site(**wrong)


def test_the_operators_resource_has_the_same_groups() -> None:
    """The resource of the operator has the groups of both files."""
    files = {name: yaml.safe_load(text) for name, text in rule_files(Site()).items()}
    resource = yaml.safe_load(operator_file(Site()))
    groups = [group for name in ("recording", "alerts") for group in files[f"quotascope-{name}.yaml"]["groups"]]
    assert (resource["kind"], resource["spec"]["groups"]) == ("PrometheusRule", groups)


ONE_AND_A_HALF = {threshold: threshold.value * 1.5 + 0.25 for _, threshold in thresholds()}
OFF = AlertSettings(enabled=False, severity=AlertSeverity.WARNING, wait="15m")
SITES = {
    "core": Site(),
    "all": Site(profile=Profile.ALL),
    "links": SITE,
    "thresholds": Site(profile=Profile.ALL, cluster_label="c", thresholds=ONE_AND_A_HALF, system_users='a"b\\.c'),
    "teams and objectives": EVERYTHING,
    "a label of teams": Site(profile=Profile.ALL, labels={"team": "platform"}),
    "without guards": Site(
        profile=Profile.ALL,
        alerts=dict.fromkeys(
            ("KafkaQuotaThrottleStorm", "KafkaQuotaManyNearLimit", "KafkaQuotaShadowThrottlesMany"), OFF
        ),
    ),
}


@pytest.mark.real
@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_the_real_tools_accept_the_files(site: Site, tmp_path: Path) -> None:
    """`promtool check rules`, with its lint for duplicates, accepts the files."""
    write(tmp_path, site)
    for name in ("quotascope-recording.yaml", "quotascope-alerts.yaml"):
        assert "SUCCESS" in output_of("promtool", "check", "rules", tmp_path / name)


@pytest.mark.real
def test_amtool_accepts_the_example(tmp_path: Path) -> None:
    """`amtool check-config` accepts the example with the templates that the command writes."""
    example = tmp_path / "alertmanager.yaml"
    example.write_text(ALERTMANAGER.read_text(encoding="utf-8"), encoding="utf-8")
    write(tmp_path / "rules", Site(), Extras(alertmanager=tmp_path / "quotascope.tmpl"))
    assert "SUCCESS" in output_of("amtool", "check-config", example)


def routed(*options: str) -> str:
    """Return the receivers to which the example sends an alert with these labels."""
    return output_of("amtool", "config", "routes", "test", f"--config.file={ALERTMANAGER}", *options).strip()


@pytest.mark.real
@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_a_receiver(name: str) -> None:
    """`amtool config routes test` sends critical alerts to the on-call, warnings to tickets, the rest to a chat."""
    severity, scope = ALERTS[name]["labels"]["severity"], ALERTS[name]["labels"]["scope"]
    receiver = {"critical": "on-call", "warning": "tickets", "info": "chat"}[severity]
    labels = f"alertname={name}", f"severity={severity}", f"scope={scope}", "cluster=paris"
    assert receiver in routed(f"--verify.receivers={receiver}", *labels)


@pytest.mark.real
def test_alerts_of_others_are_left_alone() -> None:
    """Routes of the example match only alerts of quotascope."""
    assert routed("alertname=NodeDown", "severity=critical") == "unrouted"


def test_inhibitions_name_alerts_that_exist() -> None:
    """Alerts in inhibition rules exist."""
    example = yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))
    for rule in example["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, _, value = matcher.partition("=")
            if label != "alertname":
                continue
            pattern = value.removeprefix("~").strip('"')
            assert any(re.fullmatch(pattern, name) for name in ALERTS)
            for part in re.findall(r"KafkaQuota\w+", pattern):
                assert any(name.startswith(part) for name in ALERTS)
