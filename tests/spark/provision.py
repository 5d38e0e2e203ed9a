"""
Installs older versions of Spark beside the newest: `python -m tests.spark.provision [version…]`.

Without a version it is the one that `make test` needs; pip brings each into the cache once, without what it depends on.
"""

import shutil
import sys
from functools import partial
from pathlib import Path

from tests.provisioning import command, existing, fetched, pip
from tests.spark.versions import CONNECTOR, folder

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


def main(versions: list[str]) -> int:
    if shutil.which("java") is None:
        sys.stderr.write("provision: Spark needs Java: install a JDK 17 or newer\n")
        return 1
    return command(*(partial(provision, each) for each in versions or [CONNECTOR]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
