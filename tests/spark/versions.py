"""The versions of Spark that are listened to: the newest is installed with the tests, the others lie beside it."""

import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest
from tests import class_data
from tests.provisioning import cache
from tools import newest

ROOT = Path(__file__).parents[2]
CONNECTOR = newest.connectors()["spark-sql-kafka-0-10_2.13"]
"""
The newest version that Delta Lake and the Kafka connector are released for (`connector/pom.xml`).

The gate runs it beside the newest.
"""


def _installed() -> str:
    installed_spark = metadata.distributions(name="pyspark", path=[sysconfig.get_path("purelib")])
    return next(iter(installed_spark)).version


NEWEST = _installed()
OLDER = (CONNECTOR, *(version for version in reversed(newest.recorded()) if version not in {CONNECTOR, NEWEST}))
"""Versions whose events are recorded, and the connector's: `make spark-matrix` runs the tests under each."""
VERSIONS = (NEWEST, *OLDER)
RUNNING = metadata.version("pyspark")
"""The version that this process imports: the newest, or one that stands first in PYTHONPATH."""
BY_GROUPS = pytest.mark.skipif(RUNNING.startswith("3."), reason="Spark 3 has no applyInArrow")
"""Of tests in which Spark brings the rows of a group together; the newest version runs all."""


def folder(version: str) -> Path:
    return cache() / f"pyspark-{version}"


def classes(version: str) -> Path:
    """
    The folder of the archive of a driver's classes, whether it exists or not.

    That of the newest belongs to the environment that it is in.
    """
    if version == NEWEST:
        return class_data.archives(Path(sys.prefix), f"pyspark-{version} {sys.prefix}")
    return class_data.archives(cache(), f"pyspark-{version}")


def python_path(version: str) -> list[str]:
    """Return what PYTHONPATH has to hold for a process to import that version, and these tests."""
    return [*([] if version == NEWEST else [str(folder(version))]), str(ROOT)]
