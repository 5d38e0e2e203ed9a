"""
Builds the jar for Spark from its Java: `make spark-jar`.

It is kept beside the Java and shipped, because a driver may have no JDK and a wheel may be built without one; a test
compares it with a build from scratch. It is compiled against the Spark of `constraints.txt` and the Kafka of
`tests/cluster/pom.xml`, by the `javac` of a JDK 17: another may write other bytes.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO

import pyspark
from tests.cluster.provision import libs

from quotascope.spark_listener.jvm import JAR

JAVA = Path(__file__).parents[1] / "spark_listener/jvm/java"
_MANIFEST = "Manifest-Version: 1.0\r\nAutomatic-Module-Name: io.quotascope.spark\r\n\r\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def class_path() -> str:
    """Return the jars of Spark and Kafka. Raises `NotFetched` when Kafka's were not fetched."""
    return f"{Path(pyspark.__file__).parent}/jars/*:{libs()}/*"


def compile_to(classes: Path) -> None:
    """Compile for Java 17, the oldest of Spark 4. Raises `CalledProcessError`, and `OSError` without a `javac`."""
    sources = sorted(str(path) for path in JAVA.rglob("*.java"))
    javac = ["javac", "--release", "17", "-proc:none", "-Xlint:-options", "-d"]
    subprocess.run([*javac, str(classes), "-classpath", class_path(), *sources], check=True)


def build(target: Path | IO[bytes]) -> None:
    """Write the jar, with the same bytes each time. Raises as `compile_to`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(target, "w") as jar,  # uncompressed: zlib's bytes vary
    ):
        compile_to(Path(folder))
        jar.writestr(_entry("META-INF/MANIFEST.MF"), _MANIFEST)
        for path in sorted(Path(folder).rglob("*.class")):
            name = path.relative_to(folder).as_posix()
            jar.writestr(_entry(name), path.read_bytes())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.external_attr = 0o644 << 16
    return entry


if __name__ == "__main__":
    build(JAR)
    sys.stdout.write(f"{JAR}\n")
