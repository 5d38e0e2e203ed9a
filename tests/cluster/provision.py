"""
Fetches Kafka's jars and the agents: `python -m tests.cluster.provision`.

Maven resolves `pom.xml` into `kafka-<hash>`; the hash covers the pom and the agent loader, so that a change of either
makes a new folder and an unchanged one costs nothing. The jars of the newest release are in a folder of their own,
`kafka-newest-<hash>`, by `pom-newest.xml`, and those of each further release in `kafka-<version>-<hash>`, by
`pom-release.xml`; more releases: `python -m tests.cluster.provision 3.3.2 3.6.2`. Beside the jars of the release that
most tests start lies an archive of its classes. Needs `mvn` and a JDK.
"""

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests import class_data
from tests.provisioning import JDK, NotFetched, cached, command, existing, fetched, maven, run

HERE = Path(__file__).parent
RELEASE_POM = HERE / "pom-release.xml"
POM = HERE / "pom.xml"
NEWEST_POM = HERE / "pom-newest.xml"
LOADER = HERE / "AgentLoader.java"
IN_THE_GATE: Final = ("2.8.2", "3.4.1", "3.7.2", "3.9.1", "4.1.2")
"""Releases that `make test` starts beside those of the two poms."""
JMX_EXPORTERS: Final = ("0.16.1", "0.20.0")
"""Versions of jmx_exporter beside the pom's."""
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def folder() -> Path:
    """The folder of the jars for this pom and this agent loader, whether it exists or not."""
    return cached("kafka", POM, LOADER)


def newest_folder() -> Path:
    """The folder of the newest release's jars, whether it exists or not."""
    return cached("kafka-newest", NEWEST_POM)


def libs() -> Path:
    """The folder with Kafka's jars (class path: `<libs>/*`). Raises `NotFetched`."""
    return existing(folder() / "libs", "jars of Kafka", "make jars")


def classes() -> Path:
    """The folder of the archive of a node's classes, whether it exists or not."""
    return class_data.archives(folder(), "kafka")


def newest_libs() -> Path:
    """The folder with the newest release's jars, without Kafka's tools. Raises `NotFetched`."""
    return existing(newest_folder() / "libs", "jars of Kafka", "make jars")


def release_folder(version: str) -> Path:
    """The folder of another release's jars, whether it exists or not."""
    return cached(f"kafka-{version}", RELEASE_POM)


def release_libs(version: str) -> Path:
    """The folder with another release's jars, and those of its ZooKeeper where it has one. Raises `NotFetched`."""
    return existing(release_folder(version) / "libs", f"jars of Kafka {version}", _command(version))


def jmx_exporter(version: str) -> Path:
    """The jar of a jmx_exporter. Raises `NotFetched`."""
    folder = existing(exporter_folder(version), f"jmx_exporter {version}", "make jars")
    return folder / "jmx_exporter.jar"


def agents() -> Path:
    """The folder with jolokia2.jar, jolokia1.jar, jmx_exporter.jar and agent-loader.jar. Raises `NotFetched`."""
    return existing(folder() / "agents", "agents", "make jars")


def main(versions: Sequence[str] = ()) -> int:
    """Fetch all that the tests of `make test` start, or with versions these releases."""
    releases = [partial(_release, version) for version in versions or IN_THE_GATE]
    if versions:
        return command(*releases)
    return command(
        lambda: fetched(folder(), _with_loader),
        lambda: fetched(classes(), _archived),
        lambda: fetched(newest_folder(), partial(maven, NEWEST_POM)),
        *(partial(_exporter, version) for version in JMX_EXPORTERS),
        *releases,
    )


def _command(version: str) -> str:
    return "make jars" if version in IN_THE_GATE else f"python -m tests.cluster.provision {version}"


def _release(version: str) -> Path:
    return fetched(release_folder(version), partial(maven, RELEASE_POM, properties=_properties(version)))


def _properties(version: str) -> dict[str, str]:
    """Return the properties of the release and of its logging: log4j 1 up to 3.9."""
    old = int(version.partition(".")[0]) < 4
    group, artifact, number = (
        ("org.slf4j", "slf4j-reload4j", "1.7.36") if old else ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
    )
    logging = {"logging.groupId": group, "logging.artifactId": artifact, "logging.version": number}
    return {"kafka.version": version, **logging}


def exporter_folder(version: str) -> Path:
    """The folder of another jmx_exporter, whether it exists or not."""
    return cached(f"jmx-exporter-{version}", _COPY)


def _exporter(version: str) -> Path:
    return fetched(exporter_folder(version), partial(_copied, f"io.prometheus.jmx:jmx_prometheus_javaagent:{version}"))


def _copied(artifact: str, target: Path) -> None:
    run("mvn", "--batch-mode", "--quiet", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={target}", missing=JDK)
    (jar,) = target.glob("*.jar")
    jar.rename(target / "jmx_exporter.jar")


def _archived(target: Path) -> None:
    """Let a node start and end, and keep the classes that it loaded. Raises `NotFetched`."""
    from .cluster import Cluster, Layout, Plugin  # noqa: PLC0415 - they start what is fetched here
    from .node import NodeError  # noqa: PLC0415 - as above

    target.mkdir()
    with tempfile.TemporaryDirectory() as name:
        cluster = Cluster(Layout.COMBINED, Path(name), plugin=Plugin(jvm=class_data.making(target)))
        (node,) = cluster.brokers
        try:
            node.format()
            node.start(agents=False)  # what an agent may change is not archived
            node.wait_until_ready()
            node.stop(seconds=300)
        except NodeError as error:
            raise NotFetched(f"no archive of Kafka's classes: {error}") from None
        finally:
            node.kill()


def _with_loader(target: Path) -> None:
    maven(POM, target)
    with tempfile.TemporaryDirectory() as name:
        classes = Path(name)
        run("javac", "-d", classes, LOADER, missing=JDK)
        manifest = classes / "manifest"
        manifest.write_text("Premain-Class: AgentLoader\nAgent-Class: AgentLoader\n")
        jar = target / "agents" / "agent-loader.jar"
        run("jar", "cfm", jar, manifest, "-C", classes, ".", missing=JDK)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
