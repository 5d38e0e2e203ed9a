"""
Installs older versions of Spark beside the newest: `python -m tests.spark.provision [version…]`.

Without a version it is the one that `make test` needs; pip brings each into the cache once, without what it depends on.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.spark.versions import CONNECTOR, folder

PY4J = "py4j==0.10.9.9"
"""What all of these versions talk to their JVM by."""


class SparkMissing(Exception):
    """A version of Spark is not there, or could not be installed; the message says what to do."""


def installed(version: str) -> Path:
    """The folder to put first in PYTHONPATH. Raises `SparkMissing`."""
    target = folder(version)
    if not (target / "pyspark" / "bin").is_dir():
        raise SparkMissing(f"no Spark {version} ({target}): run `make spark`")
    return target


def provision(version: str) -> Path:
    """Install one version unless it is there, and return its folder. Raises `SparkMissing`."""
    target = folder(version)
    if not target.is_dir():
        install(target, f"pyspark=={version}", PY4J)
    return installed(version)


def install(target: Path, *packages: str) -> None:
    """
    Let pip install packages into a folder of their own, without what they depend on.

    It appears under its name only when complete. Raises `SparkMissing`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as partial:
        built = Path(partial) / target.name
        _pip(built, *packages)
        built.rename(target)


def _pip(target: Path, *packages: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--target", str(target), *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SparkMissing(
            f"pip could not install {' '.join(packages)}:\n{done.stderr}"
        )


def main(versions: list[str]) -> int:
    """Install, print the folders, and return the exit code."""
    if shutil.which("java") is None:
        sys.stderr.write("provision: Spark needs Java: install a JDK 17 or newer\n")
        return 1
    try:
        for version in versions or [CONNECTOR]:
            sys.stdout.write(f"{provision(version)}\n")
    except SparkMissing as error:
        sys.stderr.write(f"provision: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
