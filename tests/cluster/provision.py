"""
Fetches Kafka's jars and the agents: `python -m tests.cluster.provision`.

Maven resolves `pom.xml` into `kafka-<hash>`; the hash covers the pom and the agent loader, so that a change of either makes a new folder
and an unchanged one costs nothing. The jars of the newest release are in a folder of their own, `kafka-newest-<hash>`, by
`pom-newest.xml`. Needs `mvn` and a JDK.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.provisioning import JDK, cached, command, existing, fetched, maven, run

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
NEWEST_POM = HERE / "pom-newest.xml"
LOADER = HERE / "AgentLoader.java"


def folder() -> Path:
    """The folder of the jars for this pom and this agent loader, whether it exists or not."""
    return cached("kafka", POM, LOADER)


def newest_folder() -> Path:
    """The folder of the newest release's jars, whether it exists or not."""
    return cached("kafka-newest", NEWEST_POM)


def libs() -> Path:
    """The folder with Kafka's jars (class path: `<libs>/*`). Raises `NotFetched`."""
    return existing(folder() / "libs", "jars of Kafka", "make jars")


def newest_libs() -> Path:
    """The folder with the newest release's jars, without Kafka's tools. Raises `NotFetched`."""
    return existing(newest_folder() / "libs", "jars of Kafka", "make jars")


def agents() -> Path:
    """The folder with jolokia2.jar, jolokia1.jar, jmx_exporter.jar and agent-loader.jar. Raises `NotFetched`."""
    return existing(folder() / "agents", "agents", "make jars")


def main() -> int:
    return command(
        lambda: fetched(folder(), _with_loader), lambda: fetched(newest_folder(), partial(maven, NEWEST_POM))
    )


def _with_loader(target: Path) -> None:
    maven(POM, target)
    with tempfile.TemporaryDirectory() as name:
        classes = Path(name)
        run("javac", "-d", classes, LOADER, missing=JDK)
        manifest = classes / "manifest"
        manifest.write_text("Premain-Class: AgentLoader\n")
        jar = target / "agents" / "agent-loader.jar"
        run("jar", "cfm", jar, manifest, "-C", classes, ".", missing=JDK)


if __name__ == "__main__":
    sys.exit(main())
