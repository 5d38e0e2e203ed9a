"""
Installs what a client of Spark Connect needs beside what the tests have: `python -m tests.spark.connect.provision`.

pip brings the packages of `requirements.txt` into the cache, 13 MB to download, once for each version of that file.
"""

import sys
from pathlib import Path

from tests.provisioning import cached, command, existing, fetched, pip

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def folder() -> Path:
    return cached("spark-connect", REQUIREMENTS)


def installed() -> Path:
    """The folder to put into PYTHONPATH. Raises `NotFetched`."""
    return existing(folder(), "client of Spark Connect", "make spark")


def _install(target: Path) -> None:
    pip(target, "--requirement", str(REQUIREMENTS))


if __name__ == "__main__":
    sys.exit(command(lambda: fetched(folder(), _install)))
