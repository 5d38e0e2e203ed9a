"""
Fetches Kafka's jars and the agents: `python -m tests.cluster.provision`.

Maven resolves `pom.xml` into `${XDG_CACHE_HOME:-~/.cache}/quotascope/kafka-<hash>`; the hash covers the pom and the agent
loader, so that a change of either makes a new folder and an unchanged one costs nothing. The jars of the newest release are in a folder
of their own, `kafka-newest-<hash>`, by `pom-newest.xml`. Needs `mvn` and a JDK.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
NEWEST_POM = HERE / "pom-newest.xml"
LOADER = HERE / "AgentLoader.java"


class ProvisioningError(Exception):
    """The jars are not there, or could not be fetched; the message says what to do."""


def folder() -> Path:
    """The folder of the jars for this pom and this agent loader, whether it exists or not."""
    return _cached("kafka", POM.read_bytes() + LOADER.read_bytes())


def newest_folder() -> Path:
    """The folder of the newest release's jars, whether it exists or not."""
    return _cached("kafka-newest", NEWEST_POM.read_bytes())


def _cached(name: str, content: bytes) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "quotascope" / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"


def libs() -> Path:
    """The folder with Kafka's jars (class path: `<libs>/*`). Raises `ProvisioningError` when they were not fetched."""
    return _existing(folder(), "libs")


def newest_libs() -> Path:
    """The folder with the newest release's jars, without Kafka's tools. Raises `ProvisioningError` when they were not fetched."""
    return _existing(newest_folder(), "libs")


def agents() -> Path:
    """
    The folder with jolokia2.jar, jolokia1.jar, jmx_exporter.jar and agent-loader.jar.

    Raises `ProvisioningError` when they were not fetched.
    """
    return _existing(folder(), "agents")


def _existing(target: Path, name: str) -> Path:
    path = target / name
    if not path.is_dir():
        raise ProvisioningError(f"Kafka's jars are missing ({path}): run `make jars`")
    return path


def provision() -> tuple[Path, Path]:
    """
    Fetch everything once and return the two folders.

    Each appears under its name only when complete, so that an interrupted or a concurrent run does no harm.
    Raises `ProvisioningError`.
    """
    return _fetched(folder(), POM, with_loader=True), _fetched(
        newest_folder(), NEWEST_POM
    )


def _fetched(target: Path, pom: Path, *, with_loader: bool = False) -> Path:
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as partial:
        built = Path(partial) / "kafka"
        goal = ("package", f"-Dtarget={built}")
        _run("mvn", "--batch-mode", "--quiet", "--file", pom, *goal)
        if with_loader:
            loader = built / "agents" / "agent-loader.jar"
            _build_loader(Path(partial) / "classes", loader)
        if not target.is_dir():
            built.rename(target)
    return target


def _build_loader(classes: Path, jar: Path) -> None:
    _run("javac", "-d", classes, LOADER)
    manifest = classes / "manifest"
    manifest.write_text("Premain-Class: AgentLoader\n")
    _run("jar", "cfm", jar, manifest, "-C", classes, ".")


def _run(program: str, *arguments: str | Path) -> None:
    if shutil.which(program) is None:
        raise ProvisioningError(
            f"`{program}` is missing: install Maven and a JDK 17 or newer"
        )
    done = subprocess.run(
        [program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ProvisioningError(f"`{program}` failed:\n{done.stdout}")


def main() -> int:
    """Fetch, print the folders, and return the exit code."""
    try:
        print(*provision(), sep="\n")  # noqa: T201 - it is a command
    except ProvisioningError as error:
        print(f"provision: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
