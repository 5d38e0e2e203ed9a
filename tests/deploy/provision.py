"""
Fetches what the files of `deploy/` and the workflows are checked with: `python -m tests.deploy.provision`.

Go builds kustomize, Helm and actionlint from the modules of `tools/go.mod`, and fetches the modules of the Prometheus
operator and of Compose, of which the definitions of their resources and the schema of their files are kept, into
`deploy-<hash>` of the cache; once, in less than two minutes.
"""

import json
import shutil
import sys
from pathlib import Path

from tests.collector.provision import BUILD, go, run
from tests.provisioning import NotFetched, cached, command, existing, fetched

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
        {f"{name}.yaml": f"{_DEFINITIONS}_{name}.yaml" for name in ("servicemonitors", "prometheusrules")},
    ),
    (
        "github.com/compose-spec/compose-go/v2@v2.16.2",
        "h1:pTp1DqQwJzFd85GzlWsSszKA1ABrV/ySqsClujIcWA8=",
        {"compose-spec.json": "schema/compose-spec.json"},
    ),
)


def tools() -> Path:
    """The folder with the programs, definitions and schema. Raises `NotFetched` when it was not made."""
    return existing(_folder(), "kustomize, Helm and actionlint", "make services")


def _make(folder: Path) -> None:
    folder.mkdir()
    run([go(), *BUILD, "-o", f"{folder}/", *PROGRAMS], HERE)
    for module, its_sum, files in FETCHED:
        _fetch(module, its_sum, files, folder)


def _fetch(module: str, its_sum: str, files: dict[str, str], folder: Path) -> None:
    # outside of any module: what it needs itself is of no interest
    download = json.loads(run([go(), "mod", "download", "-json", module], folder))
    if download["Sum"] != its_sum:
        raise NotFetched(f"{module} has the sum {download['Sum']}, not {its_sum}")
    for name, path in files.items():
        shutil.copyfile(Path(download["Dir"], path), folder / name)


def _folder() -> Path:
    return cached("deploy", HERE / "go.mod", HERE / "go.sum", f"{PROGRAMS} {FETCHED} {BUILD}")


if __name__ == "__main__":
    sys.exit(command(lambda: fetched(_folder(), _make)))
