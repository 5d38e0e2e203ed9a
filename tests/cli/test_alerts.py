"""The configuration of alerts and its effects; the mixin, rendered by jsonnet, has the same effects by `_config`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import rjsonnet
import yaml
from tests.cli.conftest import Run

from quotascope.alerts import Site, thresholds
from quotascope.alerts.render import alerts

Rules = dict[str, dict[str, Any]]
Write = Callable[..., Rules]
Groups = Callable[..., dict[str, Any]]
STORM = "KafkaQuotaThrottleStorm"
ALL: dict[str, Any] = {"profile": "all"}


@pytest.fixture
def groups(run: Run, tmp_path: Path) -> Groups:
    """Return the rules that `alerts write` makes of a configuration and all alerts, by the names of the mixin."""

    def written(config: str | dict[str, Any], *options: str) -> dict[str, Any]:
        file, folder, teams = (tmp_path / name for name in ("alerts.yaml", "rules", "teams.yaml"))
        if isinstance(config, dict) and "teams" in config:
            teams.write_text(json.dumps({"teams": config["teams"]}, ensure_ascii=False), encoding="utf-8")
            config = config | {"teams": str(teams)}
        text = config if isinstance(config, str) else json.dumps(ALL | config, ensure_ascii=False)
        file.write_text(text, encoding="utf-8")
        code, _, errors = run("alerts", "write", folder, "--alerts-config", file, *options)
        assert code == 0, errors
        stems = {"rules": "recording", "alerts": "alerts"}
        texts = {name: (folder / f"quotascope-{stem}.yaml").read_text("utf-8") for name, stem in stems.items()}
        return {name: yaml.safe_load(text) for name, text in texts.items()}

    return written


def rules_of(kinds: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (rule for kind in kinds.values() for group in kind["groups"] for rule in group["rules"])


@pytest.fixture
def write(groups: Groups) -> Write:
    """Return a function that writes the rules with options, and returns them by name."""
    return lambda *options: {rule.get("alert") or rule["record"]: rule for rule in rules_of(groups(*options))}


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }


def test_what_is_printed_changes_nothing(run: Run, tmp_path: Path) -> None:
    """Rules, runbooks, templates for Alertmanager and dashboards are byte for byte those without a configuration."""
    _, printed, _ = run("alerts", "config")
    (tmp_path / "alerts.yaml").write_text(printed, encoding="utf-8")
    for name, options in {"without": (), "with": ("--alerts-config", tmp_path / "alerts.yaml")}.items():
        to = tmp_path / name
        others = ("--alertmanager", to / "am.tmpl", "--runbooks", to / "wiki")
        assert run("alerts", "write", to / "rules", *others, *options)[0] == 0
        assert run("dashboards", "write", to / "boards", *options)[0] == 0
    without, changed = files(tmp_path / "without"), files(tmp_path / "with")
    assert "rules/quotascope-alerts.yaml" in without
    names_its_folder = {"boards/provisioning/dashboards.yaml": ""}
    assert {**changed, **names_its_folder} == {**without, **names_its_folder}


def test_every_threshold_and_alert_is_printed(run: Run) -> None:
    """The file has each threshold with value, unit and reason, and each alert with severity, times and headline."""
    _, printed, _ = run("alerts", "config")
    loaded = yaml.safe_load(printed)
    assert loaded["thresholds"] == {name: threshold.value for name, threshold in thresholds()}
    assert {name: (settings["severity"], settings["for"]) for name, settings in loaded["alerts"].items()} == {
        rule["alert"]: (rule["labels"]["severity"], rule["for"]) for rule in alerts(Site())
    }
    assert (loaded["profile"], printed.count("    #enabled: true")) == ("core", len(loaded["alerts"]))
    prose = " ".join(line.strip(" #") for line in printed.splitlines())
    for _, threshold in thresholds():
        assert f"{threshold.unit}: {threshold.meaning}. Reason: {threshold.reason}." in prose
    assert all(rule["annotations"]["summary"] in prose for rule in alerts(Site()))


def test_examples_can_be_uncommented(run: Run, write: Write) -> None:
    """Every key that is commented out has a value that works; one of two addresses of runbooks is chosen."""
    _, printed, _ = run("alerts", "config")
    text = re.sub(r"^( *)#(?! \S|$)", r"\1", printed, flags=re.MULTILINE)
    text = text.replace("    #user: alice", "    user: alice")
    text = re.sub(r"^(runbook_url|teams): .*", "", text, flags=re.MULTILINE)
    rules = write(text)
    assert rules["KafkaQuotaNearLimit"]["labels"]["component"] == "kafka"


def test_a_threshold_takes_effect_wherever_it_stands(run: Run, write: Write, tmp_path: Path) -> None:
    """A changed threshold changes alerts, records, texts, runbooks and colors of dashboards, and nothing else."""
    defaults = write({})
    values = {"THROTTLED": 0.25, "THROTTLED_SHARE": 0.7, "SPIKE_FACTOR": 2.123456789, "CLIENT_TIMEOUT": 45}
    wiki = tmp_path / "wiki"
    written = write({"thresholds": values}, "--runbooks", str(wiki))
    changed = {name for name in written if written[name] != defaults[name]}
    assert changed == {
        "cluster:kafka_quota_throttled_entities:count",
        "cluster:kafka_quota_callback_throttled:count",
        "entity:kafka_quota_throttled:persistent",
        "KafkaQuotaCallbackThrottled",
        "KafkaQuotaShadowThrottlesClient",
        "KafkaQuotaThrottleSpike",
        "KafkaQuotaThrottleBeyondClientTimeout",
    }
    assert re.search(r">\s+0\.25\n", written["cluster:kafka_quota_throttled_entities:count"]["expr"])
    assert "share15m >= 0.7" in written["entity:kafka_quota_throttled:persistent"]["expr"]
    assert "2.123456789 * " in written["KafkaQuotaThrottleSpike"]["expr"]
    beyond = written["KafkaQuotaThrottleBeyondClientTimeout"]
    assert "> 45" in beyond["expr"]
    assert "give up after 45 s" in beyond["annotations"]["description"]
    runbook = (wiki / "KafkaQuotaThrottleBeyondClientTimeout.md").read_text("utf-8")
    assert "`CLIENT_TIMEOUT` (45 s, default 30 s)" in runbook
    boards = tmp_path / "boards"
    assert run("dashboards", "write", boards, "--alerts-config", tmp_path / "alerts.yaml")[0] == 0
    overview = json.loads((boards / "dashboards" / "quotascope-overview.json").read_text("utf-8"))
    delay = next(panel for panel in overview["panels"] if panel["title"] == "Longest delay")
    steps = delay["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step["color"], step["value"]) for step in steps] == [("green", None), ("red", 1e-9), ("semi-dark-red", 45)]


def test_an_alert_is_as_it_is_set(write: Write) -> None:
    """
    Rules have the configured severity, times and labels.

    An alert that is off is left out, and labels of all alerts are on each.
    """
    name = "KafkaQuotaNearLimit"
    changed = {"severity": "info", "for": "1h", "keep_firing_for": "0s", "labels": {"queue": "later"}}
    settings = {name: changed, "KafkaQuotaRuleChanged": {"enabled": False}}
    defaults = write({})
    written = write({"labels": {"component": "kafka"}, "alerts": settings})
    assert {*defaults} - {*written} == {"KafkaQuotaRuleChanged"}
    assert (written[name]["for"], written[name]["keep_firing_for"]) == ("1h", "0s")
    labels = {"severity": "info", "scope": "entity", "component": "kafka"}
    assert written[name]["labels"] == labels | {"queue": "later"}
    assert written["KafkaQuotaLimitPredicted"]["labels"] == labels


def test_without_the_alert_on_storms_each_client_has_its_own(write: Write) -> None:
    """Otherwise no alert would fire where too many clients are throttled."""
    count = "cluster:kafka_quota_persistently_throttled:count"
    on = write({})
    off = write({"alerts": {STORM: {"enabled": False}}})
    for name in ("Produce", "Mutation"):
        alert = f"KafkaQuota{name}Throttled"
        assert count in on[alert]["expr"]
        assert count not in off[alert]["expr"]


@pytest.mark.parametrize(
    ("of_many", "of_alert", "window"),
    [
        ("15m", "15m", "[13m59s:2m]"),
        ("15m", "5m", "[3m59s:2m]"),
        ("3m", "15m", "[1m59s:2m]"),
        ("90s", "15m", ""),
        ("15m", "1m", ""),
        ("1h", "2h", "[58m59s:2m]"),
    ],
)
def test_too_many_near_their_limits_end_single_alerts_before_they_fire(
    write: Write, of_many: str, of_alert: str, window: str
) -> None:
    """The number of clients is read over almost the shorter `for` of both alerts, unless that is too short."""
    alert = "KafkaQuotaNearLimit"
    rules = write({"alerts": {"KafkaQuotaManyNearLimit": {"for": of_many}, alert: {"for": of_alert}}})
    assert window in rules[alert]["expr"]
    assert ("min_over_time" in rules[alert]["expr"]) == bool(window)


def test_teams_and_a_label_team_go_together(write: Write) -> None:
    """The label `team` applies to alerts on brokers, and to entities that no team owns."""
    teams = [{"team": "payments", "clients": [{"user": "alice"}]}]
    rules = write({"labels": {"team": "platform"}, "teams": teams})
    assert rules["KafkaQuotaDelayQueueGrowing"]["labels"]["team"] == "platform"
    assert (
        rules["KafkaQuotaNearLimit"]["labels"]["team"]
        == '{{ if eq $labels.user "alice" }}{{ "payments" }}{{ else }}{{ "platform" }}{{ end }}'
    )


def test_options_override_the_file(write: Write) -> None:
    """Options override the values of the file, like the exporter's options."""
    config = {"exporter_url": "https://a.corp", "cluster_label": "kafka"}
    rules = write(config, "--runbook-url", "https://b.corp/{alert}")
    rule = rules["KafkaQuotaNearLimit"]
    assert rule["annotations"]["runbook_url"] == "https://b.corp/KafkaQuotaNearLimit"
    assert "kafka" in rule["expr"]
    served = write(config)["KafkaQuotaNearLimit"]["annotations"]["runbook_url"]
    by_names = ("user", "client_id")
    assert served.startswith("https://a.corp/runbooks/KafkaQuotaNearLimit{{")
    assert all(f"{name}={{{{ . | urlquery }}}}" in served for name in by_names)


def test_labels_of_alerts_leave_the_clusters_label_alone(run: Run, tmp_path: Path) -> None:
    """A label of alerts cannot have the name of the clusters' label: alerts of all clusters would look alike."""
    config = tmp_path / "alerts.yaml"
    config.write_text("labels: {kafka: ours}\n")
    command = ("alerts", "write", tmp_path / "rules", "--alerts-config", config)
    code, _, errors = run(*command, "--cluster-label", "kafka")
    assert (code, "'kafka' cannot be the label of clusters" in errors) == (2, True), errors
    assert not (tmp_path / "rules").exists()


@pytest.mark.parametrize("wrong", ["soon", "300y", f"{10**20}s", "9" * 5_000 + "ms"])
def test_nothing_is_written_for_a_mistake(wrong: str, run: Run, tmp_path: Path) -> None:
    """A mistake is one message that names the key and its line; earlier files stay as they are."""
    config, folder = tmp_path / "alerts.yaml", tmp_path / "rules"
    command = ("alerts", "write", folder, "--alerts-config", config)
    config.write_text("thresholds:\n  STORM: 70\n")
    assert run(*command)[0] == 0
    contents = files(folder)
    config.write_text(f"alerts:\n  KafkaQuotaNearLimit:\n    for: {wrong}\n")
    code, out, errors = run(*command)
    assert (code, out) == (1, "")
    assert "line 3: alerts.KafkaQuotaNearLimit.for is not a duration" in errors
    assert files(folder) == contents


Render = Callable[..., dict[str, Any]]
HIDDEN = "{ rules: m.prometheusRules, alerts: m.prometheusAlerts }"
OWNED: dict[str, Any] = {
    "teams": [
        {"team": 'pay "{{ }}"\n%', "clients": [{"user": 'a"lice\n{{ }} %s'}, {"client_id_pattern": "b|c"}]},
        {"team": "platform", "clients": [{"user_pattern": ".*"}]},
    ],
    "objectives": [{"name": 'b"\n{{', "objective_percent": 99, "user_pattern": "b.*"}],
}


DEFAULT_MIXIN: list[str] = []


def mixin(run: Run, options: tuple[str, ...]) -> str:
    """Return the output of `alerts mixin`; without options it is made once, as it takes a second."""
    if not options and DEFAULT_MIXIN:
        return DEFAULT_MIXIN[0]
    code, text, errors = run("alerts", "mixin", *options)
    assert code == 0, errors
    if not options:
        DEFAULT_MIXIN.append(text)
    return text


@pytest.fixture
def render(run: Run, tmp_path: Path) -> Render:
    """Return a function that renders the mixin with a `_config` by jsonnet."""

    def rendered(config: dict[str, Any] | None = None, *options: str, shown: str = HIDDEN) -> dict[str, Any]:
        path = tmp_path / "mixin.libsonnet"
        path.write_text(mixin(run, options), encoding="utf-8")
        source = (
            f"local m = (import {json.dumps(str(path))}) + {{ _config+:: {merged(ALL | (config or {}))} }}; {shown}"
        )
        document: dict[str, Any] = json.loads(rjsonnet.evaluate_snippet("test", source))
        return document

    return rendered


def merged(config: object) -> str:
    """Return settings as jsonnet, each object added to the existing one."""
    if not isinstance(config, dict):
        return json.dumps(config, ensure_ascii=False)
    items = (
        f"{json.dumps(key)}{'+' if isinstance(value, dict) else ''}: {merged(value)}" for key, value in config.items()
    )
    return f"{{ {', '.join(items)} }}"


def parsed(kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the rules with expressions in Prometheus's own layout, since a longer number breaks lines elsewhere."""
    for rule in rules_of(kinds):
        rule["expr"] = promql_parser.parse(rule["expr"]).prettify()
    return kinds


@pytest.mark.parametrize(
    "config",
    [
        {},
        OWNED,
        {"cluster_label": "k", **OWNED},
        {"teams": OWNED["teams"][:1], "labels": {"team": 'o"\n%s'}},
        {"teams": OWNED["teams"][:1]},
    ],
)
def test_the_defaults_are_the_rules_that_are_written(
    render: Render, groups: Groups, tmp_path: Path, config: dict[str, Any]
) -> None:
    """The rules have teams and objectives from the file."""
    expected = groups(config)
    rules = render(None, "--alerts-config", str(tmp_path / "alerts.yaml"))
    assert parsed(rules) == parsed(expected)


MUTATION = "KafkaQuotaMutationThrottled"
HOSTILE = "%(a)s %d \"' \\ \n } [[ |||"


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"thresholds": {"THROTTLED": 0.123456789}}, id="threshold"),
        pytest.param({"thresholds": {"THROTTLED": 200, "CLIENT_TIMEOUT": 120}}, id="above long throttles"),
        pytest.param(
            {
                "thresholds": {
                    "REPLICATION_DAY": 0.7,
                    "HEAVY_SHARE": 0.15,
                    "NEAR_LIMIT": 0.925,
                    "HEAVY_BYTES": 1e9,
                    "SPIKE_FACTOR": 2.5,
                    "CLIENT_TIMEOUT": 45,
                }
            },
            id="texts",
        ),
        pytest.param(
            {
                "thresholds": {
                    "NEAR_LIMIT": 0.07,
                    "HEAVY_SHARE": 0.57,  # times 100 it is a little less than 57
                    "CLIENT_TIMEOUT": 100 / 3,
                    "SPIKE_FACTOR": 1e5 / 7,
                    "SPIKE_ENTITIES": 12345,
                }
            },
            id="many digits",
        ),
        pytest.param(
            {
                "alerts": {
                    "KafkaQuotaNearLimit": {
                        "for": "1h",
                        "keep_firing_for": "0s",
                        "severity": "info",
                        "labels": {"queue": HOSTILE},
                    }
                }
            },
            id="alert",
        ),
        pytest.param({"alerts": {"KafkaQuotaRuleChanged": {"enabled": False}}}, id="off"),
        pytest.param({"alerts": {"KafkaQuotaReplicationThrottleLeftOn": {"enabled": False}}}, id="group off"),
        pytest.param({"alerts": {STORM: {"enabled": False}}}, id="no storm"),
        pytest.param({"alerts": {"KafkaQuotaManyNearLimit": {"enabled": False}}}, id="not many"),
        pytest.param({"alerts": {STORM: {"for": "90s"}, MUTATION: {"for": "1h30m"}}}, id="seconds"),
        pytest.param({"alerts": {STORM: {"for": "1d1h"}, MUTATION: {"for": "1w500ms"}}}, id="hours"),
        pytest.param({"alerts": {MUTATION: {"for": "179s"}}}, id="no window"),
        pytest.param({"alerts": {"KafkaQuotaManyNearLimit": {"for": "3m"}}}, id="near limits"),
        pytest.param({"labels": {"team": "a", "empty": ""}}, id="empty label"),
        pytest.param({"labels": {"component": HOSTILE, "scope_": "é😀"}}, id="labels"),
        pytest.param({"cluster_label": "kafka_cluster"}, id="cluster"),
        pytest.param({"system_users": HOSTILE.replace("[[", "x\\.y")[6:]}, id="users"),
        pytest.param({"runbook_url": "https://wiki/%25s/{alert}?'\"\\"}, id="runbooks"),
        pytest.param({"grafana_url": "https://grafana.corp/%d/"}, id="grafana"),
    ],
)
def test_a_setting_does_what_it_does_in_the_file(render: Render, groups: Groups, config: dict[str, Any]) -> None:
    """Thresholds in expressions and texts, times, severities, alerts that are off, labels and addresses."""
    rendered_groups, default = parsed(render(config)), parsed(render())
    assert rendered_groups == parsed(groups(config))
    assert rendered_groups != default


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"thresholds": {"THROTTLED": "1 or up"}}, "thresholds.THROTTLED is not a number"),
        ({"thresholds": {"THROTLED": 1}}, "thresholds.THROTLED is not known"),
        ({"alerts": {MUTATION: {"severity": "page"}}}, f"alerts.{MUTATION}.severity is not"),
        *(
            ({"alerts": {MUTATION: {"for": text}}}, f"alerts.{MUTATION}.for is not a duration")
            for text in ("", "5", "m", "1m1h", "1i", "5 m", "-1m", 5, "5m'", "1m1m")
        ),
        ({"alerts": {MUTATION: {"labels": {"a-b": "x"}}}}, f"alerts.{MUTATION}.labels are not"),
        ({"alerts": {"Kafka": {}}}, "alerts.Kafka is not known"),
        ({"labels": {"a": "{{ query }}"}}, "labels are not"),
        ({"labels": {"scope": "a"}}, "labels are not"),
        ({"cluster_label": "user"}, "cluster_label cannot be a label"),
        ({"labels": {"cluster": "a"}}, "labels must not replace"),
        ({"cluster_label": "a) or (b"}, "cluster_label cannot be a label"),
        ({"runbook_url": "https://wiki/{{ x }}/{alert}"}, "runbook_url is not"),
        ({"runbook_url": "https://wiki/"}, "runbook_url is not"),
        ({"grafana_url": "javascript:x"}, "grafana_url is not"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_key(render: Render, config: dict[str, Any], said: str) -> None:
    """A mistake in the configuration of the mixin is an error that names the key, and nothing is rendered."""
    with pytest.raises(RuntimeError, match=f"_config.{said}"):
        render(config)


def test_names_that_look_like_places_stay_as_they_are(render: Render, groups: Groups, tmp_path: Path) -> None:
    """A name of a team or objective that looks like a placeholder is rendered as it is written."""
    name = "${cluster}${STORM} # if x |||\n|||\ue000"
    config = {
        "teams": [{"team": name, "clients": [{"user": name}]}],
        "objectives": [{"name": name, "objective_percent": 99, "user": name}],
        "system_users": "a[$]{cluster}|[$]{STORM}",
    }
    expected = groups(config)
    rules = render(None, "--alerts-config", str(tmp_path / "alerts.yaml"))
    assert parsed(rules) == parsed(expected)
    quoted = json.dumps(name, ensure_ascii=False)
    teams = {rule["labels"]["team"] for rule in rules_of({"alerts": rules["alerts"]}) if "team" in rule["labels"]}
    assert teams == {f"{{{{ if eq $labels.user {quoted} }}}}{{{{ {quoted} }}}}{{{{ end }}}}"}


def test_the_mixin_has_the_core_profile_by_default(render: Render, run: Run, tmp_path: Path) -> None:
    """The mixin has the profiles of `alerts write`; `enabled` adds an alert, and leaves one out."""
    assert run("alerts", "write", tmp_path / "rules")[0] == 0
    core = {"rules": "recording", "alerts": "alerts"}
    written = {
        name: yaml.safe_load((tmp_path / f"rules/quotascope-{stem}.yaml").read_text()) for name, stem in core.items()
    }
    assert parsed(render({"profile": "core"})) == parsed(written)
    names = {rule["alert"] for group in written["alerts"]["groups"] for rule in group["rules"]}
    chosen = {"KafkaQuotaRuleChanged": {"enabled": True}, STORM: {"enabled": False}}
    changed = render({"profile": "core", "alerts": chosen})["alerts"]["groups"]
    assert {rule["alert"] for group in changed for rule in group["rules"]} == names - {STORM} | {
        "KafkaQuotaRuleChanged"
    }


def test_a_lost_plus_is_found(render: Render) -> None:
    """A `thresholds:` without `+`, which in jsonnet replaces all thresholds, is an error."""
    with pytest.raises(RuntimeError, match=r"thresholds.BROKER_SOLD is missing: write \+:"):
        render(None, shown="(m + { _config+:: { thresholds: { THROTTLED: 1 } } }).prometheusRules")


CHANGED = {"thresholds": {"THROTTLED": 40, "SPIKE": 3}, "cluster_label": "kafka", "runbook_url": "https://wiki/{alert}"}


@pytest.mark.parametrize("config", [{}, CHANGED])
def test_dashboards_are_those_that_are_written(
    render: Render, run: Run, tmp_path: Path, config: dict[str, Any]
) -> None:
    """The mixin renders the same dashboards as `dashboards write`: thresholds, the label of clusters, links."""
    file = tmp_path / "alerts.yaml"
    file.write_text(json.dumps(config))
    folder = tmp_path / "boards"
    assert run("dashboards", "write", folder, "--alerts-config", file)[0] == 0
    expected = {path.name: json.loads(path.read_text("utf-8")) for path in (folder / "dashboards").iterdir()}
    boards = render(config, shown="m.grafanaDashboards")
    assert normal(boards) == normal(expected)


def normal(boards: object) -> object:
    """Boards with expressions without the breaks of lines, which follow the length of labels."""
    if isinstance(boards, dict):
        return {key: normal(value) for key, value in boards.items()}
    if isinstance(boards, list):
        return [normal(value) for value in boards]
    return "".join(boards.split()) if isinstance(boards, str) else boards
