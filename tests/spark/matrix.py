"""Runs these tests under each older version of Spark: `python -m tests.spark.matrix [arguments of pytest]`."""

import os
import subprocess
import sys

from tests.provisioning import NotFetched
from tests.spark.provision import provision
from tests.spark.versions import OLDER

IGNORED = [
    "-W",
    "ignore:unclosed <socket.socket:ResourceWarning",
    "-W",
    "ignore:distutils Version classes:DeprecationWarning",
]
"""Spark 3.5 leaves the sockets of its results to the collector, and compares versions as setuptools no longer likes."""


def run(version: str, arguments: list[str]) -> int:
    """The exit code of pytest under that version. Raises `NotFetched`."""
    folder = provision(version)
    path = {"PYTHONPATH": str(folder), "SPARK_HOME": str(folder / "pyspark")}
    sys.stdout.write(f"=== Spark {version}\n")
    sys.stdout.flush()
    pytest = [sys.executable, "-m", "pytest", *IGNORED]
    command = [*pytest, *(arguments or ["tests/spark"])]
    return subprocess.run(command, env={**os.environ, **path}, check=False).returncode


def main(arguments: list[str]) -> int:
    """0 when the tests pass under all versions."""
    try:
        codes = [run(version, arguments) for version in OLDER]
    except NotFetched as error:
        sys.stderr.write(f"matrix: {error}\n")
        return 1
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
