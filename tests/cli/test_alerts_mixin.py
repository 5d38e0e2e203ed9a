"""The mixin, rendered by jsonnet: what `_config` sets is what `alerts write` and `dashboards write` make of the same settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import rjsonnet
import yaml
from tests.alerts.promtool import GENERATED
from tests.cli.conftest import Run

Render = Callable[..., dict[str, Any]]
HIDDEN = "{ rules: m.prometheusRules, alerts: m.prometheusAlerts }"
OWNED: dict[str, Any] = {
    "owners": [{"team": 'pay "{{ }}"\n%', "user": 'a"lice\n{{ }} %s'}],
    "default_owner": "platform",
    "objectives": [{"name": 'b"\n{{', "objective_percent": 99, "user_pattern": "b.*"}],
}


@pytest.fixture
def render(run: Run, tmp_path: Path) -> Render:
    """What jsonnet makes of the mixin with a `_config`."""

    def rendered(config: object = None, *options: str, shown: str = HIDDEN) -> dict[str, Any]:
        path = GENERATED / "mixin" / "mixin.libsonnet"
        if options:
            code, text, errors = run("alerts", "mixin", *options)
            assert code == 0, errors
            path = tmp_path / "mixin.libsonnet"
            path.write_text(text, encoding="utf-8")
        source = f"local m = (import {json.dumps(str(path))}) + {{ _config+:: {merged(config or {})} }}; {shown}"
        made: dict[str, Any] = json.loads(rjsonnet.evaluate_snippet("test", source))
        return made

    return rendered


def merged(config: object) -> str:
    """Settings as jsonnet, each object added to the one that is there."""
    if not isinstance(config, dict):
        return json.dumps(config, ensure_ascii=False)
    items = (
        f"{json.dumps(key)}{'+' if isinstance(each, dict) else ''}: {merged(each)}" for key, each in config.items()
    )
    return f"{{ {', '.join(items)} }}"


@pytest.fixture
def written(run: Run, tmp_path: Path) -> Callable[[object], dict[str, Any]]:
    """What `alerts write` makes of settings."""

    def of(config: object) -> dict[str, Any]:
        file, folder = tmp_path / "alerts.yaml", tmp_path / "rules"
        text = json.dumps(config, ensure_ascii=False)
        file.write_text(text, encoding="utf-8")
        code, _, errors = run("alerts", "write", str(folder), "--alerts-config", str(file))
        assert code == 0, errors
        return {
            name: yaml.safe_load((folder / f"quotascope-{stem}.yaml").read_text("utf-8"))
            for name, stem in (("rules", "recording"), ("alerts", "alerts"))
        }

    return of


def parsed(groups: dict[str, Any]) -> dict[str, Any]:
    """The same with expressions as Prometheus reads them: a longer number breaks lines elsewhere."""
    for kind in groups.values():
        for group in kind["groups"]:
            for rule in group["rules"]:
                rule["expr"] = promql_parser.parse(rule["expr"]).prettify()
    return groups


@pytest.mark.parametrize(
    "config",
    [
        {},
        OWNED,
        {"cluster_label": "k", **OWNED},
        {"owners": OWNED["owners"], "labels": {"owner": 'o"\n%s'}},
        {"owners": OWNED["owners"]},
    ],
)
def test_the_defaults_are_the_rules_that_are_written(
    render: Render, written: Callable[[object], dict[str, Any]], tmp_path: Path, config: dict[str, Any]
) -> None:
    """To the character where the label of clusters is no very short one, with owners and objectives from the file."""
    expected = written(config)
    found = render(None, "--alerts-config", str(tmp_path / "alerts.yaml"))
    if "cluster_label" in config:
        found, expected = parsed(found), parsed(expected)
    assert found == expected


STORM = "KafkaQuotaThrottleStorm"
MUTATION = "KafkaQuotaMutationThrottled"
HOSTILE = "%(a)s %d \"' \\ \n } [[ |||"


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"thresholds": {"THROTTLED": 0.123456789}}, id="threshold"),
        pytest.param(
            {
                "thresholds": {
                    "REPLICATION_DAY": 0.7,
                    "HEAVY_SHARE": 0.15,
                    "NEAR_LIMIT": 0.85,
                    "HEAVY_BYTES": 1e9,
                    "SPIKE_FACTOR": 2.5,
                    "CLIENT_TIMEOUT": 45,
                }
            },
            id="texts",
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
        pytest.param({"labels": {"owner": "a", "empty": ""}}, id="empty label"),
        pytest.param({"labels": {"component": HOSTILE, "scope_": "é😀"}}, id="labels"),
        pytest.param({"cluster_label": "kafka_cluster"}, id="cluster"),
        pytest.param({"system_users": HOSTILE.replace("[[", "x\\.y")[6:]}, id="users"),
        pytest.param({"runbook_url": "https://wiki/%25s/{alert}?'\"\\"}, id="runbooks"),
        pytest.param({"grafana_url": "https://grafana.corp/%d/"}, id="grafana"),
    ],
)
def test_a_setting_does_what_it_does_in_the_file(
    render: Render, written: Callable[[object], dict[str, Any]], config: dict[str, Any]
) -> None:
    """Thresholds in expressions and texts, times, severities, alerts that are off, labels and addresses."""
    made, default = parsed(render(config)), parsed(render())
    assert made == parsed(written(config))
    assert made != default


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"thresholds": {"THROTTLED": "1 or up"}},
            "thresholds.THROTTLED is not a number",
        ),
        ({"thresholds": {"THROTLED": 1}}, "thresholds.THROTLED is not known"),
        (
            {"alerts": {MUTATION: {"severity": "page"}}},
            f"alerts.{MUTATION}.severity is not",
        ),
        *(
            (
                {"alerts": {MUTATION: {"for": each}}},
                f"alerts.{MUTATION}.for is not a duration",
            )
            for each in ("", "5", "m", "1m1h", "1i", "5 m", "-1m", 5, "5m'", "1m1m")
        ),
        (
            {"alerts": {MUTATION: {"labels": {"a-b": "x"}}}},
            f"alerts.{MUTATION}.labels are not",
        ),
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
    """Nothing is rendered."""
    with pytest.raises(RuntimeError, match=f"_config.{said}"):
        render(config)


def test_characters_that_mark_places_are_refused(run: Run, tmp_path: Path) -> None:
    """In owners they would become expressions."""
    file = tmp_path / "alerts.yaml"
    file.write_text(json.dumps({"owners": [{"team": "\ue000", "user": "a"}]}))
    code, out, errors = run("alerts", "mixin", "--alerts-config", str(file))
    assert (code, out) == (1, "")
    assert "characters for private use" in errors


def test_a_lost_plus_is_found(render: Render) -> None:
    """In jsonnet it replaces all thresholds."""
    with pytest.raises(RuntimeError, match=r"thresholds.BURN is missing: write \+:"):
        render(None, shown="(m + { _config+:: { thresholds: { THROTTLED: 1 } } }).prometheusRules")


@pytest.mark.parametrize(
    "config",
    [
        {},
        {
            "thresholds": {"THROTTLED": 40, "SPIKE": 3},
            "cluster_label": "kafka",
            "runbook_url": "https://wiki/{alert}",
        },
    ],
)
def test_dashboards_are_those_that_are_written(
    render: Render, run: Run, tmp_path: Path, config: dict[str, Any]
) -> None:
    """With colors at the thresholds, the label of clusters, and links only where there is an address."""
    file = tmp_path / "alerts.yaml"
    file.write_text(json.dumps(config))
    folder = tmp_path / "boards"
    assert run("dashboards", "write", str(folder), "--alerts-config", str(file))[0] == 0
    expected = {path.name: json.loads(path.read_text("utf-8")) for path in (folder / "dashboards").iterdir()}
    found = render(config, shown="m.grafanaDashboards")
    assert normal(found) == normal(expected)


def normal(boards: object) -> object:
    """Boards with expressions without the breaks of lines, which follow the length of labels."""
    if isinstance(boards, dict):
        return {key: normal(each) for key, each in boards.items()}
    if isinstance(boards, list):
        return [normal(each) for each in boards]
    return "".join(boards.split()) if isinstance(boards, str) else boards
