"""The manifests as kustomize builds them."""

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.deploy.commands import DEPLOY
from tests.deploy.provision import tools

KUBERNETES = DEPLOY / "kubernetes"
LAYERS = ("base", "prometheus-operator")

Manifest = dict[str, Any]


@cache
def built(layer: str) -> tuple[Manifest, ...]:
    """All manifests of a layer."""
    done = subprocess.run(
        [tools() / "kustomize", "build", KUBERNETES / layer], capture_output=True, text=True, check=True
    )
    return tuple(yaml.safe_load_all(done.stdout))


def only(kind: str, layer: str = "base") -> Manifest:
    """The one manifest of this kind."""
    (found,) = (each for each in built(layer) if each["kind"] == kind)
    return found


def container() -> Manifest:
    """The exporter's."""
    (found,) = only("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def definition(name: str) -> Manifest:
    """The schema of one of the Prometheus operator's resources, which refuses keys that it does not know."""
    text = (tools() / f"{name}.yaml").read_text()
    (version,) = yaml.safe_load(text)["spec"]["versions"]
    schema = _strict(version["schema"]["openAPIV3Schema"])
    return _for_python(schema)


def _strict(schema: Manifest) -> Manifest:
    """The same, closed as a strict API server closes it; only metadata is left open, whose keys the operator does not define."""
    closed = {name: _strict(value) if isinstance(value, dict) else value for name, value in schema.items()}
    properties = closed.get("properties")
    if closed.get("type") == "object" and properties:
        closed.setdefault("additionalProperties", False)
    return closed


def _for_python(schema: Manifest) -> Manifest:
    """The same with Go's regular expressions as Python writes them."""
    text = json.dumps(schema).replace('"^(?i)', '"(?i)^')
    return dict(json.loads(text))


def texts(value: object) -> Iterator[tuple[str, str]]:
    """All texts with the key that they are under."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str):
                yield str(key), inner
            else:
                yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts({"": inner} if isinstance(inner, str) else inner)


def config_file(folder: Path) -> Path:
    """The configuration of the ConfigMap, with secrets in a folder of ours."""
    (text,) = only("ConfigMap")["data"].values()
    path = folder / "quotascope.yaml"
    path.write_text(text.replace("/etc/quotascope/secrets", str(folder)))
    return path
