"""The Helm chart says what the manifests for kustomize say, and refuses values that it does not know."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from tests.deploy.commands import DEPLOY, ROOT
from tests.deploy.manifests import Manifest, definition, only
from tests.deploy.provision import tools

from quotascope.alerts import Site
from quotascope.alerts.files import operator_file
from quotascope.alerts.settings import Profile
from quotascope.exporter.config import load_config

pytestmark = pytest.mark.real  # Helm, and the operator's definitions

CHART = DEPLOY / "helm" / "quotascope"
STRIMZI = ("--values", str(CHART / "values-strimzi.yaml"))
ALL = ("serviceMonitor.enabled=true", "rules.enabled=true", "dashboards.enabled=true")
CHARTS_OWN = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
    "checksum/config",
}


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tools() / "helm", *words], capture_output=True, text=True, check=False)


@cache
def rendered(*words: str, name: str = "quotascope") -> tuple[Manifest, ...]:
    settings = [word for setting in ALL for word in ("--set", setting)]
    process = helm("template", name, str(CHART), *settings, *words)
    assert process.returncode == 0, process.stderr
    return tuple(manifest for manifest in yaml.safe_load_all(process.stdout) if manifest)


def one(kind: str, *words: str) -> Manifest:
    (manifest,) = (
        candidate
        for candidate in rendered(*words)
        if candidate["kind"] == kind and candidate["metadata"]["name"] == "quotascope"
    )
    return manifest


def common(value: Any) -> Any:
    """
    Return the value without the parts that only a chart adds.

    Namespace and hashed names, which only kustomize adds, are left out, too.
    """
    if isinstance(value, list):
        return [common(item) for item in value]
    if not isinstance(value, dict):
        return value.partition("-")[0] if str(value).startswith("quotascope-") else value
    values = {
        key: common(item)
        for key, item in value.items()
        if key not in CHARTS_OWN and (key, item) != ("namespace", "quotascope")
    }
    return {key: item for key, item in values.items() if item != {}}


@pytest.mark.parametrize("words", [(), STRIMZI], ids=["default", "strimzi"])
def test_linter_finds_nothing(words: tuple[str, ...]) -> None:
    """Helm's own linter finds nothing in the rendered templates."""
    process = helm("lint", "--strict", str(CHART), *words)
    assert process.returncode == 0, process.stdout
    assert "WARNING" not in process.stdout


@pytest.mark.parametrize("kind", ["Deployment", "NetworkPolicy", "Service", "ServiceAccount", "ServiceMonitor"])
def test_chart_is_what_kustomize_builds(kind: str) -> None:
    """The chart differs in names and labels that distinguish releases, and in the rollout by an annotation."""
    assert common(one(kind)) == common(only(kind, "prometheus-operator"))


def test_configuration_is_the_same() -> None:
    """The chart's parsed configuration equals that of the ConfigMap."""
    (ours,) = one("ConfigMap")["data"].values()
    (theirs,) = only("ConfigMap")["data"].values()
    assert yaml.safe_load(ours) == yaml.safe_load(theirs)


def test_rules_and_dashboards_are_the_generated_ones() -> None:
    """Rendered rules and dashboards equal the generated ones, whose braces are no templates of Helm."""
    for profile in Profile:
        rules = yaml.safe_load(operator_file(Site(profile=profile)))
        assert one("PrometheusRule", "--set", f"rules.profile={profile}")["spec"] == rules["spec"]
    assert one("PrometheusRule")["spec"] == yaml.safe_load(operator_file(Site()))["spec"]
    boards = {
        name: text
        for manifest in rendered()
        if manifest["metadata"]["labels"].get("grafana_dashboard") == "1"
        for name, text in manifest["data"].items()
    }
    expected = {file.name: file.read_text() for file in (ROOT / "dashboards/generated").iterdir()}
    assert boards == expected
    assert all(json.loads(text)["uid"] for text in boards.values())


@pytest.mark.parametrize("version", ["1.31", "1.37"])
@pytest.mark.parametrize("words", [(), STRIMZI], ids=["default", "strimzi"])
def test_kubernetes_accepts_all(version: str, words: tuple[str, ...]) -> None:
    """Each manifest is valid by the schema of Kubernetes or of the operator, and has no other key."""
    for manifest in rendered(*words, name="another"):
        if manifest["apiVersion"].startswith("monitoring"):
            schema = definition(f"{manifest['kind'].lower()}s")
            jsonschema.validate(manifest, schema)
        else:
            kubernetes_validate.validate(manifest, version, strict=True)
        assert manifest["metadata"]["name"].startswith("another")


def test_strimzi_preset_is_a_configuration(tmp_path: Path) -> None:
    """The preset for Strimzi is a valid configuration, with agents at port 9404 and mounted files."""
    (text,) = one("ConfigMap", *STRIMZI)["data"].values()
    pod = one("Deployment", *STRIMZI)["spec"]["template"]["spec"]
    mounts = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]
    assert {"/etc/quotascope/secrets", "/etc/quotascope/ca"} < set(mounts)
    for name in ("secrets/password", "ca/ca.crt"):
        assert f"/etc/quotascope/{name}" in text
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("hidden")
    file = tmp_path / "quotascope.yaml"
    file.write_text(text.replace("/etc/quotascope", str(tmp_path)))
    discovery = load_config(file, {}).discovery.kafka
    assert discovery is not None
    assert discovery.url == "http://{host}:9404/metrics"
    to_kafka, _ = one("NetworkPolicy", *STRIMZI)["spec"]["egress"]
    assert {"port": 9404} in to_kafka["ports"]


@pytest.mark.parametrize(
    "setting",
    [
        "networkPolicy.kafkaPort=1",
        "serviceMonitor.interval=often",
        "image.repository=",
        "dashboards.labels.a=1",
        "secretname=x",
    ],
)
def test_unknown_values_are_refused(setting: str) -> None:
    """A typing mistake is an error, not a default."""
    process = helm("template", "quotascope", str(CHART), "--set", setting)
    assert process.returncode != 0
    assert "schema" in process.stderr


@pytest.mark.parametrize(
    ("setting", "kind", "absent"),
    [
        ("secretName=", "Deployment", "kafka-password"),
        ("networkPolicy.enabled=false", "NetworkPolicy", ""),
        ("probes.tcpSocket=true", "Deployment", "httpGet"),
    ],
)
def test_parts_can_be_left_out(setting: str, kind: str, absent: str) -> None:
    """A part that a value switches off is not rendered."""
    pods = [manifest for manifest in rendered("--set", setting) if manifest["kind"] == kind]
    assert (absent or kind) not in yaml.safe_dump(pods)
