"""The configuration of alerts: what it changes, and that it changes nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import Run

from quotascope.alerts import Site, thresholds
from quotascope.alerts.book import alerts

Rules = dict[str, dict[str, Any]]
Write = Callable[..., Rules]


@pytest.fixture
def write(run: Run, tmp_path: Path) -> Write:
    """Rules of `alerts write` with a configuration, by the name of what they alert on or record."""

    def written(config: object, *options: str) -> Rules:
        file = tmp_path / "alerts.yaml"
        text = config if isinstance(config, str) else json.dumps(config)
        file.write_text(text, encoding="utf-8")
        folder = tmp_path / "rules"
        command = ("alerts", "write", str(folder), "--alerts-config", str(file), *options)
        code, _, errors = run(*command)
        assert code == 0, errors
        return {
            rule.get("alert") or rule["record"]: rule
            for path in folder.iterdir()
            for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
            for rule in group["rules"]
        }

    return written


def files(folder: Path) -> dict[str, str]:
    """The texts of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }


def test_what_is_printed_changes_nothing(run: Run, tmp_path: Path) -> None:
    """Rules, runbooks, the example for Alertmanager and dashboards are byte for byte those without a configuration."""
    _, printed, _ = run("alerts", "config")
    (tmp_path / "alerts.yaml").write_text(printed, encoding="utf-8")
    for name, options in {
        "without": (),
        "with": ("--alerts-config", str(tmp_path / "alerts.yaml")),
    }.items():
        to = tmp_path / name
        others = ("--alertmanager", str(to / "am.yaml"), "--runbooks", str(to / "wiki"))
        assert run("alerts", "write", str(to / "rules"), *others, *options)[0] == 0
        assert run("dashboards", "write", str(to / "boards"), *options)[0] == 0
    without, changed = files(tmp_path / "without"), files(tmp_path / "with")
    assert "rules/quotascope-alerts.yaml" in without
    assert {**changed, "boards/provisioning/dashboards.yaml": ""} == {
        **without,
        "boards/provisioning/dashboards.yaml": "",
    }


def test_every_threshold_and_alert_is_printed(run: Run) -> None:
    """With its value, unit and reason, or its severity, times and headline: those of the catalog."""
    _, printed, _ = run("alerts", "config")
    loaded = yaml.safe_load(printed)
    assert loaded["thresholds"] == {name: one.value for name, one in thresholds()}
    assert {name: (each["enabled"], each["severity"], each["for"]) for name, each in loaded["alerts"].items()} == {
        alert.name: (True, alert.severity.value, alert.wait) for alert in alerts(Site())
    }
    prose = " ".join(line.strip(" #") for line in printed.splitlines())
    for _, one in thresholds():
        assert f"{one.unit}: {one.meaning}. Reason: {one.reason}." in prose
    assert all(alert.summary in prose for alert in alerts(Site()))


def test_examples_can_be_uncommented(run: Run, write: Write) -> None:
    """All that is commented out but comments is a key with a value that works; of two addresses of runbooks one is chosen."""
    _, printed, _ = run("alerts", "config")
    text = re.sub(r"^( *)#(?! \S|$)", r"\1", printed, flags=re.MULTILINE)
    text = text.replace("    #user: alice", "    user: alice")
    text = re.sub(r"^runbook_url: .*", "", text, flags=re.MULTILINE)
    rules = write(text)
    assert rules["KafkaQuotaNearLimit"]["labels"]["component"] == "kafka"
    assert "payments" in rules["KafkaQuotaNearLimit"]["labels"]["owner"]


def test_a_threshold_takes_effect_wherever_it_stands(run: Run, write: Write, tmp_path: Path) -> None:
    """In alerts, recording rules, texts, runbooks and the colors of dashboards; nothing else changes."""
    before = write({})
    values = {"THROTTLED": 0.25, "SPIKE_FACTOR": 2.123456789, "CLIENT_TIMEOUT": 45}
    wiki = tmp_path / "wiki"
    after = write({"thresholds": values}, "--runbooks", str(wiki))
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {
        "cluster:kafka_quota_throttled_entities:count",
        "KafkaQuotaProduceThrottled",
        "KafkaQuotaFetchThrottled",
        "KafkaQuotaRequestThrottled",
        "KafkaQuotaMutationThrottled",
        "KafkaQuotaThrottleStorm",
        "KafkaQuotaCallbackThrottled",
        "KafkaQuotaShadowThrottlesClient",
        "KafkaQuotaThrottleSpike",
        "KafkaQuotaThrottleBeyondClientTimeout",
    }
    assert "> 0.25" in after["cluster:kafka_quota_throttled_entities:count"]["expr"]
    assert "2.123456789 * " in after["KafkaQuotaThrottleSpike"]["expr"]
    beyond = after["KafkaQuotaThrottleBeyondClientTimeout"]
    assert "> 45" in beyond["expr"]
    assert "give up after 45 s" in beyond["annotations"]["description"]
    runbook = (wiki / "KafkaQuotaThrottleBeyondClientTimeout.md").read_text("utf-8")
    assert "`CLIENT_TIMEOUT` (45 s, default 30 s)" in runbook
    boards = tmp_path / "boards"
    config = str(tmp_path / "alerts.yaml")
    assert run("dashboards", "write", str(boards), "--alerts-config", config)[0] == 0
    overview = json.loads((boards / "dashboards" / "quotascope-overview.json").read_text("utf-8"))
    delay = next(panel for panel in overview["panels"] if panel["title"] == "Longest delay")
    steps = delay["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step["color"], step["value"]) for step in steps] == [
        ("green", None),
        ("orange", 0.25),
        ("red", 45),
    ]


def test_an_alert_is_as_it_is_set(write: Write) -> None:
    """Severity, times and labels; one that is off is left out, and the labels of all are on each."""
    name = "KafkaQuotaNearLimit"
    settings = {
        name: {
            "severity": "info",
            "for": "1h",
            "keep_firing_for": "0s",
            "labels": {"queue": "later"},
        },
        "KafkaQuotaRuleChanged": {"enabled": False},
    }
    before = write({})
    after = write({"labels": {"component": "kafka"}, "alerts": settings})
    assert {*before} - {*after} == {"KafkaQuotaRuleChanged"}
    assert (after[name]["for"], after[name]["keep_firing_for"]) == ("1h", "0s")
    assert after[name]["labels"] == {
        "severity": "info",
        "scope": "entity",
        "component": "kafka",
        "queue": "later",
    }
    labels = {**before["KafkaQuotaNearLimit"]["labels"], "component": "kafka"}
    assert after["KafkaQuotaLimitPredicted"]["labels"] == labels | {"severity": "info"}


def test_without_the_alert_on_storms_each_client_has_its_own(write: Write) -> None:
    """Otherwise no alert would fire where too many clients are throttled."""
    count = "cluster:kafka_quota_throttled_entities:count"
    on = write({})
    off = write({"alerts": {"KafkaQuotaThrottleStorm": {"enabled": False}}})
    for name in ("Produce", "Mutation"):
        alert = f"KafkaQuota{name}Throttled"
        assert count in on[alert]["expr"]
        assert count not in off[alert]["expr"]


@pytest.mark.parametrize(
    ("of_storm", "of_alert", "window"),
    [
        ("15m", "15m", "[14m]"),
        ("15m", "5m", "[4m]"),
        ("3m", "15m", "[2m]"),
        ("90s", "15m", ""),
        ("15m", "1m", ""),
        ("1h", "2h", "[59m]"),
    ],
)
def test_a_storm_ends_single_alerts_before_they_fire(write: Write, of_storm: str, of_alert: str, window: str) -> None:
    """The number of clients is looked at for almost the whole `for` of the two alerts, the shorter one, unless it may not be recorded within that."""
    alert = "KafkaQuotaMutationThrottled"
    rules = write(
        {
            "alerts": {
                "KafkaQuotaThrottleStorm": {"for": of_storm},
                alert: {"for": of_alert},
            }
        }
    )
    assert f"entities:count{window}" in rules[alert]["expr"]
    assert ("min_over_time" in rules[alert]["expr"]) == bool(window)


def test_owners_and_a_label_owner_go_together(write: Write) -> None:
    """The label is that of alerts on brokers, and of entities that no owner has."""
    owners = [{"team": "payments", "user": "alice"}]
    rules = write({"labels": {"owner": "platform"}, "owners": owners})
    assert rules["KafkaQuotaDelayQueueGrowing"]["labels"]["owner"] == "platform"
    assert (
        rules["KafkaQuotaNearLimit"]["labels"]["owner"]
        == '{{ if eq $labels.user "alice" }}{{ "payments" }}{{ else }}{{ "platform" }}{{ end }}'
    )


def test_options_override_the_file(write: Write) -> None:
    """As those of the exporter do."""
    config = {"exporter_url": "https://a.corp", "cluster_label": "kafka"}
    rules = write(config, "--runbook-url", "https://b.corp/{alert}")
    rule = rules["KafkaQuotaNearLimit"]
    assert rule["annotations"]["runbook_url"] == "https://b.corp/KafkaQuotaNearLimit"
    assert "kafka" in rule["expr"]
    served = write(config)["KafkaQuotaNearLimit"]["annotations"]["runbook_url"]
    assert served == "https://a.corp/runbooks/KafkaQuotaNearLimit"


def test_labels_of_alerts_leave_the_clusters_label_alone(run: Run, tmp_path: Path) -> None:
    """Also where an option names it: alerts of all clusters would look like those of one."""
    config = tmp_path / "alerts.yaml"
    config.write_text("labels: {kafka: ours}\n")
    command = ("alerts", "write", str(tmp_path / "rules"), "--alerts-config", str(config))
    code, _, errors = run(*command, "--cluster-label", "kafka")
    assert (code, "'kafka' cannot be the label of clusters" in errors) == (1, True), errors
    assert not (tmp_path / "rules").exists()


@pytest.mark.parametrize("wrong", ["soon", "300y", f"{10**20}s", "9" * 5_000 + "ms"])
def test_nothing_is_written_for_a_mistake(wrong: str, run: Run, tmp_path: Path) -> None:
    """One message with the key and its line; earlier files stay as they are."""
    config, folder = tmp_path / "alerts.yaml", tmp_path / "rules"
    config.write_text("thresholds:\n  STORM: 70\n")
    assert run("alerts", "write", str(folder), "--alerts-config", str(config))[0] == 0
    before = files(folder)
    config.write_text(f"alerts:\n  KafkaQuotaNearLimit:\n    for: {wrong}\n")
    code, out, errors = run("alerts", "write", str(folder), "--alerts-config", str(config))
    assert (code, out) == (1, "")
    assert "line 3: alerts.KafkaQuotaNearLimit.for is not a duration" in errors
    assert files(folder) == before
