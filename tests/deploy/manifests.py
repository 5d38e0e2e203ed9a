"""The manifests as kustomize builds them."""

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml
from tests.deploy.commands import DEPLOY
from tests.deploy.provision import tools

KUBERNETES = DEPLOY / "kubernetes"
LAYERS = ("base", "prometheus-operator")

Manifest = dict[str, Any]


@cache
def built(layer: str) -> tuple[Manifest, ...]:
    process = subprocess.run(
        [tools() / "kustomize", "build", KUBERNETES / layer], capture_output=True, text=True, check=True
    )
    return tuple(yaml.safe_load_all(process.stdout))


def only(kind: str, layer: str = "base") -> Manifest:
    (manifest,) = (candidate for candidate in built(layer) if candidate["kind"] == kind)
    return manifest


def container() -> Manifest:
    (only_container,) = only("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(only_container)


def definition(name: str) -> Manifest:
    """Return the schema of one of the Prometheus operator's resources, which refuses unknown keys."""
    (version,) = yaml.safe_load((tools() / f"{name}.yaml").read_text())["spec"]["versions"]
    text = json.dumps(_strict(version["schema"]["openAPIV3Schema"]))
    return dict(json.loads(text.replace('"^(?i)', '"(?i)^')))  # Go's regular expressions as Python writes them


def _strict(schema: Manifest) -> Manifest:
    """
    Return the schema closed as a strict API server closes it.

    Only metadata is left open, whose keys the operator does not define.
    """
    closed = {name: _strict(value) if isinstance(value, dict) else value for name, value in schema.items()}
    properties = closed.get("properties")
    if closed.get("type") == "object" and properties:
        closed.setdefault("additionalProperties", False)
    return closed


def texts(value: object) -> Iterator[tuple[str, str]]:
    """Yield all texts with their keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str):
                yield str(key), inner
            else:
                yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts({"": inner} if isinstance(inner, str) else inner)
