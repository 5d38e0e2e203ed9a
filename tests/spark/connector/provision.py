"""
Fetches the jars of Spark's Kafka connector and of Delta Lake: `python -m tests.spark.connector.provision`.

Maven resolves `pom.xml` into `${XDG_CACHE_HOME:-~/.cache}/quotascope/spark-connector-<hash>`, once for each pom.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")


class ConnectorMissing(Exception):
    """The connector's jars are not there, or could not be fetched; the message says what to do."""


def folder() -> Path:
    """Where the jars lie, or will lie."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    return cache / "quotascope" / f"spark-connector-{name}"


def jars() -> list[Path]:
    """The connector, Delta Lake, and what they need. Raises `ConnectorMissing`."""
    found = sorted(folder().glob("*.jar"))
    if not found:
        raise ConnectorMissing(
            f"no connector ({folder()}): run `python -m tests.spark.connector.provision`"
        )
    return found


def provision() -> Path:
    """
    Fetch the jars unless they are there, and return their folder.

    It appears under its name only when complete. Raises `ConnectorMissing`.
    """
    target = folder()
    if target.is_dir():
        return target
    if shutil.which("mvn") is None:
        raise ConnectorMissing("`mvn` is missing: install Maven and a JDK")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as partial:
        built = Path(partial) / "jars"
        _maven(built)
        built.rename(target)
    return target


def _maven(target: Path) -> None:
    command = ["mvn", "--batch-mode", "--quiet", "--file", str(POM), "package"]
    done = subprocess.run(
        [*command, f"-Dtarget={target}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConnectorMissing(f"`mvn` failed:\n{done.stdout}{done.stderr}")


def main() -> int:
    """Fetch, print the folder, and return the exit code."""
    try:
        sys.stdout.write(f"{provision()}\n")
    except ConnectorMissing as error:
        sys.stderr.write(f"provision: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
