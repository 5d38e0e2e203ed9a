"""Kafka's own classes in a JVM of their own, behind a pipe."""

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster.provision import libs, newest_libs, release_libs
from tests.provisioning import cached, fetched

from quotascope.metrics.kafka.release import KafkaRelease

SOURCES = Path(__file__).parent / "java"
JARS: dict[str, Callable[[], Path]] = {
    "2.8": partial(release_libs, "2.8.2"),
    "3.4": partial(release_libs, "3.4.1"),
    "3.7": partial(release_libs, "3.7.2"),
    "4.3": libs,
    "4.4": newest_libs,
}
"""Folders of the jars of each release, by the names of the tests' parameters."""
CURRENT = ("4.3", "4.4")
"""Releases with which all subjects are compared."""
_MOVED = {
    "2.8": ("until_3_7", "until_2_8"),
    "3.4": ("until_3_7", "since_3_0"),
    "3.7": ("until_3_7", "since_3_0"),
    "4.3": ("since_4_0", "until_4_3"),
    "4.4": ("since_4_0", "since_4_4"),
}
"""The folders of sources about what has moved between releases."""


class HarnessError(Exception):
    """A failure of the harness itself: Java is missing, or it does not understand an operation."""


def compiled(libs: Path) -> Path:
    """
    Return the folder of the compiled harness.

    It is built on first use and after every change of a source or of the jars.
    """
    folders = (SOURCES, *(SOURCES / folder for folder in _MOVED[KafkaRelease.parse(_version(libs)).version]))
    sources = [source for folder in folders for source in sorted(folder.glob("*.java"))]
    target = cached("differential", str(libs), *sources)
    return fetched(target, lambda classes: _javac(libs, sources, classes))


def _javac(libs: Path, sources: list[Path], classes: Path) -> None:
    command = [
        "javac",
        "-Xlint:all",
        "-Werror",
        "-proc:none",
        "-d",
        str(classes),
        "-cp",
        f"{libs}/*",
        *map(str, sources),
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise HarnessError(f"the Java harness does not compile:\n{process.stderr}")


class Kafka:
    """
    A JVM that replays operations on the classes of one release of Kafka.

    `send` and `receive` are apart, so that our engine can work on the same batch meanwhile.
    """

    def __init__(self, libs: Path) -> None:
        if shutil.which("java") is None or shutil.which("javac") is None:
            raise HarnessError("`java` or `javac` is missing: install a JDK 17 or newer (`make services`)")
        self.version = _version(libs)
        self.release = KafkaRelease.parse(self.version)
        class_path = f"{compiled(libs)}:{libs}/*"
        options = ["-XX:+UseSerialGC", "-Xmx512m", "-Dlog4j2.level=OFF"]
        self._process = subprocess.Popen(
            ["java", *options, "-cp", class_path, "Replay"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=30)

    def send(self, lines: list[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n".join([*lines, "", ""]))
        self._process.stdin.flush()

    def receive(self) -> list[str]:
        """
        Return the answers to the batch that was sent, one per line.

        Raise `HarnessError` when it was not understood.
        """
        assert self._process.stdout is not None
        answers = []
        while (line := self._process.stdout.readline()) != "\n":
            if not line:
                raise HarnessError(f"the JVM ended with exit code {self._process.wait(timeout=30)}")
            answers.append(line.rstrip("\n"))
        for answer in answers:
            if answer.startswith("failed "):
                raise HarnessError(bytes.fromhex(answer.removeprefix("failed .")).decode())
        return answers


def _version(libs: Path) -> str:
    for jar in sorted(libs.glob("kafka-clients-*.jar")):
        if match := re.fullmatch(r"kafka-clients-([0-9.]+)\.jar", jar.name):
            return match[1]
    raise HarnessError(f"no kafka-clients jar in {libs}")
