"""
Installs older versions of Spark beside the newest: `python -m tests.spark.provision [version…]`.

Without a version it is the one that `make test` needs; pip brings each into the cache once, without what it depends on.
Beside each, and beside the newest, lies an archive of the classes that a driver loads.
"""

import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.provisioning import NotFetched, command, existing, fetched, pip
from tests.spark.versions import CONNECTOR, NEWEST, classes, folder

PY4J = "py4j==0.10.9.9"
"""What all of these versions talk to their JVM by."""


def installed(version: str) -> Path:
    """The folder to put first in PYTHONPATH. Raises `NotFetched`."""
    existing(folder(version) / "pyspark" / "bin", f"Spark {version}", "make spark")
    return folder(version)


def provision(version: str) -> Path:
    """Install one version unless it is there, and return its folder. Raises `NotFetched`."""
    fetched(folder(version), partial(_install, version))
    return installed(version)


def _install(version: str, target: Path) -> None:
    pip(target, f"pyspark=={version}", PY4J)


def _archived(version: str, target: Path) -> None:
    """Let a driver work and end, and keep the classes that it loaded. Raises `NotFetched`."""
    from tests.spark.process import variables  # noqa: PLC0415 - brings Spark in

    target.mkdir()
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.first_classes", name, target],
            env=variables(version, Path(name)),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise NotFetched(f"no archive of the classes of Spark {version}:\n{done.stderr}")


def main(versions: list[str]) -> int:
    if shutil.which("java") is None:
        sys.stderr.write("provision: Spark needs Java: install a JDK 17 or newer\n")
        return 1
    older = versions or [CONNECTOR]
    return command(
        *(partial(provision, version) for version in older),
        *(partial(fetched, classes(each), partial(_archived, each)) for each in (NEWEST, *older)),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
