"""
Fetches what the files of `deploy/` and the workflows are checked with: `python -m tests.deploy.provision`.

Go builds kustomize, Helm and actionlint from the modules of `tools/go.mod`, and fetches the modules of the Prometheus
operator and of Compose, of which the definitions of their resources and the schema of their files are kept, into
`${XDG_CACHE_HOME:-~/.cache}/quotascope/deploy-<hash>`; once, in two minutes.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.collector.go_tool import GoFailed, cache, go, run

HERE = Path(__file__).parent / "tools"
PROGRAMS = (
    "github.com/rhysd/actionlint/cmd/actionlint",
    "helm.sh/helm/v4/cmd/helm",
    "sigs.k8s.io/kustomize/kustomize/v5",
)
_DEFINITIONS = "example/prometheus-operator-crd/monitoring.coreos.com"
FETCHED = (  # module and version, its sum, and the files that are kept, by the names that they get
    (
        "github.com/prometheus-operator/prometheus-operator@v0.84.0",
        "h1:XXm7lKizTnnxeSwI01wjNAapKzw/4XAPdpcZqjRKgRU=",
        {
            f"{name}.yaml": f"{_DEFINITIONS}_{name}.yaml"
            for name in ("servicemonitors", "prometheusrules")
        },
    ),
    (
        "github.com/compose-spec/compose-go/v2@v2.16.2",
        "h1:pTp1DqQwJzFd85GzlWsSszKA1ABrV/ySqsClujIcWA8=",
        {"compose-spec.json": "schema/compose-spec.json"},
    ),
)


class ToolsMissing(Exception):
    """The tools are not there, or could not be had; the message says what to do."""


def tools() -> Path:
    """The folder with the programs, definitions and schema. Raises `ToolsMissing` when it was not made."""
    path = _path()
    if not path.is_dir():
        raise ToolsMissing(
            f"no kustomize, Helm and actionlint ({path}): run `make services`"
        )
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
            _build(partial)
            for module, its_sum, files in FETCHED:
                _fetch(module, its_sum, files, partial)
        except GoFailed as failed:
            raise ToolsMissing(str(failed)) from None
        partial.rename(target)
    return target


def _build(folder: Path) -> None:
    flags = ["-mod=readonly", "-trimpath", "-ldflags=-s -w"]
    run([go(), "build", *flags, "-o", f"{folder}/", *PROGRAMS], HERE)


def _fetch(module: str, its_sum: str, files: dict[str, str], folder: Path) -> None:
    # outside of any module: what it needs itself is of no interest
    found = json.loads(run([go(), "mod", "download", "-json", module], folder))
    if found["Sum"] != its_sum:
        raise ToolsMissing(f"{module} has the sum {found['Sum']}, not {its_sum}")
    for name, path in files.items():
        shutil.copyfile(Path(found["Dir"], path), folder / name)


def _path() -> Path:
    content = b"".join((HERE / name).read_bytes() for name in ("go.mod", "go.sum"))
    content += f"{PROGRAMS} {FETCHED}".encode()
    return cache() / f"deploy-{hashlib.sha256(content).hexdigest()[:16]}"


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{provision()}\n")
    except ToolsMissing as missing:
        sys.exit(str(missing))
