"""Builds functions of SQL in Java, for tasks that have Kafka's Java client."""

import subprocess
from pathlib import Path

from tests.cluster.provision import libs

SOURCES = Path(__file__).with_name("java")


def jars(folder: Path) -> str:
    """The jars to name in `spark.jars`; that of the functions is made in the folder. Raises `NotFetched`."""
    import pyspark  # noqa: PLC0415 - for its jars

    (clients,) = libs().glob("kafka-clients-*.jar")
    spark = Path(pyspark.__file__).parent / "jars" / "*"
    classes, jar = folder / "functions", folder / "functions.jar"
    sources = sorted(map(str, SOURCES.glob("*.java")))
    _run("javac", "--release", "11", "-cp", f"{clients}:{spark}", "-d", str(classes), *sources)
    _run("jar", "cf", str(jar), "-C", str(classes), ".")
    return f"{clients},{jar}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
