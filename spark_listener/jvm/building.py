"""
Builds the executor plugin's jar with `javac` alone: `stubs/` declares what it uses of Spark and Kafka.

Imports nothing of ours, so that `setup.py` can load it by its path.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import IO

JAR = "quotascope-spark.jar"
_HERE = Path(__file__).parent
_MANIFEST = (
    "Manifest-Version: 1.0\r\nAutomatic-Module-Name: io.quotascope.spark\r\n\r\n"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)


class BuildFailed(Exception):
    """There is no `javac`, or it refused; the message says which."""


def has_compiler() -> bool:
    """Whether there is a `javac`."""
    return shutil.which("javac") is not None


def build(target: Path | IO[bytes]) -> None:
    """Write the jar, the same bytes each time for the same `javac`. Raises `BuildFailed`, and `OSError` from the target."""
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder)
        compile_to(classes, "-sourcepath", str(_HERE / "stubs"), "-implicit:none")
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
            jar.writestr(_entry("META-INF/MANIFEST.MF"), _MANIFEST)
            for path in sorted(classes.rglob("*.class")):
                name = path.relative_to(classes).as_posix()
                jar.writestr(_entry(name), path.read_bytes())


def compile_to(classes: Path, *options: str) -> None:
    """Compile the plugin for Java 8 and later; the options say where the classes of Spark and Kafka are. Raises `BuildFailed`."""
    sources = sorted(str(path) for path in (_HERE / "java").rglob("*.java"))
    javac = ["javac", "--release", "8", "-Xlint:-options", "-d", str(classes)]
    try:
        done = subprocess.run(  # noqa: S603 - files of ours
            [*javac, *options, *sources], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BuildFailed(
            f"`javac` cannot be run ({error.strerror}): install a JDK of version 9 or newer"
        ) from error
    if done.returncode:
        raise BuildFailed(f"`javac` failed:\n{done.stderr}")


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
