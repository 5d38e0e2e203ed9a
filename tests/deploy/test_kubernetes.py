"""The manifests are valid, restricted, and agree with what the exporter is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import kubernetes_validate
import pytest
import yaml
from tests.deploy.commands import options_of_serve
from tests.deploy.manifests import LAYERS, Manifest, built, container, definition, only, texts
from tests.integration import web
from tests.integration.eventually import eventually

from quotascope.alerts import Site
from quotascope.alerts.files import operator_file
from quotascope.alerts.settings import Profile
from quotascope.exporter.config import Config, load_config

if TYPE_CHECKING:
    from tests.deploy.conftest import Service

pytestmark = pytest.mark.real  # kustomize, and the operator's definitions

NAME = {"app.kubernetes.io/name": "quotascope"}
VERSIONS = ("1.31", "1.37")
"""The oldest Kubernetes whose schema the manifests are checked with, and the newest that there is."""
SECRETS = re.compile(r"password|token|secret|credential", re.IGNORECASE)


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_all(version: str) -> None:
    """Each manifest of Kubernetes's own is valid by its schema, which refuses another key."""
    for manifest in built("base"):
        kubernetes_validate.validate(manifest, version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**only("Service"), "specs": {}}, version, strict=True)


def test_operator_accepts_its_resources() -> None:
    """
    The ServiceMonitor and the written rules are valid by the definitions of the operator.

    `quotascope alerts write` writes the rules.

    These refuse another key, deep inside as well.
    """
    monitor = only("ServiceMonitor", "prometheus-operator")
    jsonschema.validate(monitor, definition("servicemonitors"))
    for profile in Profile:
        rules = operator_file(Site(profile=profile))
        jsonschema.validate(yaml.safe_load(rules), definition("prometheusrules"))
    (endpoint,) = monitor["spec"]["endpoints"]
    spec = {**monitor["spec"], "endpoints": [{**endpoint, "scrapeTimout": "1s"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**monitor, "spec": spec}, definition("servicemonitors"))


def test_operator_layer_adds_to_the_base() -> None:
    """The layer has all of the base, and the ServiceMonitor."""
    kinds = [[manifest["kind"] for manifest in built(layer)] for layer in LAYERS]
    assert sorted(kinds[1]) == sorted([*kinds[0], "ServiceMonitor"])


def test_configuration_loads(tmp_path: Path) -> None:
    """The exporter accepts the file of the ConfigMap, with the secret in the file that it names."""
    (text,) = only("ConfigMap")["data"].values()
    (tmp_path / "kafka-password").write_text("hidden\n")
    path = tmp_path / "quotascope.yaml"
    path.write_text(text.replace("/etc/quotascope/secrets", str(tmp_path)))
    config = load_config(path, {})
    assert config.kafka is not None
    assert config.kafka.sasl is not None
    assert config.kafka.sasl.password_file == tmp_path / "kafka-password"


def test_arguments_are_ours() -> None:
    """The words of the container are a command with options that exist, and name the file that is mounted."""
    mounts = [mount["mountPath"] for mount in container()["volumeMounts"]]
    assert str(options_of_serve(container()["args"])["config"]) in mounts


def test_ports_agree() -> None:
    """Container, Service, policy, monitor and the exporter's default are the same port."""
    (port,) = container()["ports"]
    (offered,) = only("Service")["spec"]["ports"]
    (endpoint,) = only("ServiceMonitor", "prometheus-operator")["spec"]["endpoints"]
    (ingress,) = only("NetworkPolicy")["spec"]["ingress"]
    assert port["containerPort"] == offered["port"] == Config().server.port
    assert offered["targetPort"] == port["name"]
    assert ingress["ports"] == [{"port": port["name"]}]
    assert endpoint["port"] == offered["name"]


def test_selectors_find_their_pods() -> None:
    """Each selector selects labels that exist."""
    deployment, service = only("Deployment")["spec"], only("Service")
    monitor = only("ServiceMonitor", "prometheus-operator")["spec"]
    labels = [
        deployment["selector"]["matchLabels"],
        service["spec"]["selector"],
        only("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        deployment["template"]["metadata"]["labels"],
        service["metadata"]["labels"],
        monitor["selector"]["matchLabels"],
    ]
    assert labels == [NAME] * 6


def test_pod_is_restricted() -> None:
    """The pod keeps the strictest of Kubernetes's standards, and writes nowhere."""
    pod = only("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] > 10_000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"]
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all(mount["readOnly"] for mount in container()["volumeMounts"])


def test_secrets_are_references() -> None:
    """No manifest is a Secret; each key for one has the name of a file or of a Secret."""
    assert "Secret" not in {manifest["kind"] for manifest in built("base")}
    (text,) = only("ConfigMap")["data"].values()
    for manifest in (*built("base"), yaml.safe_load(text)):
        for key, value in texts(manifest):
            is_reference = key == "secretName" or (key.endswith("_file") and value.startswith("/"))
            assert not SECRETS.search(key) or is_reference, (key, value)


def test_probes_are_answered(service: Service) -> None:
    """The probes ask for paths that exist, and a broker that is down takes no exporter out of service."""
    probes: list[Manifest] = [container()[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]

    def answered() -> None:
        assert [web.ask(service.url + probe["path"]).status for probe in probes] == [200, 200, 200]

    assert [probe["port"] for probe in probes] == ["metrics"] * 3
    eventually(answered)  # it is ready after its first collection
