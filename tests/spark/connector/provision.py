"""
Fetches the jars of Spark's Kafka connector and of Delta Lake: `python -m tests.spark.connector.provision`.

Maven resolves `pom.xml` into `spark-connector-<hash>`, once for each pom.
"""

import sys
from functools import partial
from pathlib import Path

from tests.provisioning import cached, command, existing, fetched, maven

POM = Path(__file__).with_name("pom.xml")
COMMAND = "python -m tests.spark.connector.provision"


def folder() -> Path:
    return cached("spark-connector", POM)


def jars() -> list[Path]:
    """The connector, Delta Lake, and what they need. Raises `NotFetched`."""
    return sorted(existing(folder(), "connector", COMMAND).glob("*.jar"))


if __name__ == "__main__":
    sys.exit(command(lambda: fetched(folder(), partial(maven, POM))))
