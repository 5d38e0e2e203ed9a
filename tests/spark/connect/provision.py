"""
Installs what a client of Spark Connect needs beside what the tests have: `python -m tests.spark.connect.provision`.

pip brings the packages of `requirements.txt` into the cache, 13 MB to download, once for each version of that file.
"""

import hashlib
import sys
from pathlib import Path

from tests.spark.provision import SparkMissing, install
from tests.spark.versions import cache

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def folder() -> Path:
    """Where the packages lie, or will lie."""
    name = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    return cache() / f"spark-connect-{name}"


def installed() -> Path:
    """The folder to put into PYTHONPATH. Raises `SparkMissing`."""
    target = folder()
    if not target.is_dir():
        raise SparkMissing(f"no client of Spark Connect ({target}): run `make spark`")
    return target


def provision() -> Path:
    """Install the packages unless they are there, and return their folder. Raises `SparkMissing`."""
    target = folder()
    if not target.is_dir():
        install(target, "--requirement", str(REQUIREMENTS))
    return target


def main() -> int:
    """Install, print the folder, and return the exit code."""
    try:
        sys.stdout.write(f"{provision()}\n")
    except SparkMissing as error:
        sys.stderr.write(f"provision: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
