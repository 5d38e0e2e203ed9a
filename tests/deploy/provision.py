"""
Fetches what the manifests are checked with: `python -m tests.deploy.provision`.

Go builds kustomize from the modules of `kustomize/go.mod`, and fetches the module of the Prometheus operator, of which the
definitions of its resources are kept, into `${XDG_CACHE_HOME:-~/.cache}/quotascope/deploy-<hash>`; once, in one to two minutes.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.collector.go_tool import GoFailed, cache, go, run

HERE = Path(__file__).parent / "kustomize"
KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5"
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.84.0"
OPERATOR_SUM = "h1:XXm7lKizTnnxeSwI01wjNAapKzw/4XAPdpcZqjRKgRU="
DEFINITIONS = ("servicemonitors", "prometheusrules")


class ToolsMissing(Exception):
    """The tools are not there, or could not be had; the message says what to do."""


def tools() -> Path:
    """The folder with `kustomize` and a YAML file for each definition. Raises `ToolsMissing` when it was not made."""
    path = _path()
    if not path.is_dir():
        raise ToolsMissing(f"no kustomize ({path}): run `make services`")
    return path


def provision() -> Path:
    """
    Build and fetch once, and return the folder.

    It appears under its name only when complete. Raises `ToolsMissing`.
    """
    target = _path()
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as name:
        partial = Path(name) / "tools"
        partial.mkdir()
        try:
            _build(partial / "kustomize")
            _fetch(partial)
        except GoFailed as failed:
            raise ToolsMissing(str(failed)) from None
        partial.rename(target)
    return target


def _build(target: Path) -> None:
    flags = ["-mod=readonly", "-trimpath", "-ldflags=-s -w"]
    run([go(), "build", *flags, "-o", str(target), KUSTOMIZE], HERE)


def _fetch(folder: Path) -> None:
    # outside of any module: what it needs itself is of no interest
    told = json.loads(run([go(), "mod", "download", "-json", OPERATOR], folder))
    if told["Sum"] != OPERATOR_SUM:
        raise ToolsMissing(f"{OPERATOR} has the sum {told['Sum']}, not {OPERATOR_SUM}")
    definitions = Path(told["Dir"]) / "example" / "prometheus-operator-crd"
    for name in DEFINITIONS:
        shutil.copyfile(
            definitions / f"monitoring.coreos.com_{name}.yaml", folder / f"{name}.yaml"
        )


def _path() -> Path:
    content = b"".join((HERE / name).read_bytes() for name in ("go.mod", "go.sum"))
    content += f"{OPERATOR} {OPERATOR_SUM} {DEFINITIONS}".encode()
    return cache() / f"deploy-{hashlib.sha256(content).hexdigest()[:16]}"


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{provision()}\n")
    except ToolsMissing as missing:
        sys.exit(str(missing))
