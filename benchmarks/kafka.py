"""Kafka's classes in a JVM that answers how long its own loops take."""

import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

SOURCE = Path(__file__).parent / "java" / "EngineBench.java"


class Kafka:
    """
    A JVM that runs one scenario at a time and idles in between.

    Args:
        libs: folder of Kafka's jars.

    """

    def __init__(self, libs: Path) -> None:
        self._classes = tempfile.TemporaryDirectory(prefix="quotascope-bench-")
        path = f"{libs}/*"
        subprocess.run(["javac", "-proc:none", "-d", self._classes.name, "-cp", path, str(SOURCE)], check=True)
        options = ["-XX:+UseSerialGC", "-Xmx1g", "-Dlog4j2.level=OFF"]
        self._process = subprocess.Popen(
            ["java", *options, "-cp", f"{self._classes.name}:{path}", "EngineBench"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, scenario: str, count: int) -> float:
        """Return ns per record of a scenario, or bytes per entity."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{scenario}\t{count}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=30)
        self._classes.cleanup()
