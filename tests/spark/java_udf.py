"""Builds functions of SQL in Java, for tasks that have Kafka's Java client."""

import subprocess
from pathlib import Path

from tests.cluster.provision import libs

SOURCES = Path(__file__).with_name("java")


def jars(folder: Path, name: str = "Refused") -> str:
    """The jars to name in `spark.jars`; that of the function lies in that folder. Raises `NotFetched`."""
    import pyspark  # noqa: PLC0415 - for its jars

    (clients,) = libs().glob("kafka-clients-*.jar")
    spark = Path(pyspark.__file__).parent / "jars" / "*"
    classes, jar = folder / f"{name}-classes", folder / f"{name}.jar"
    path = f"{clients}:{spark}"
    _run("javac", "--release", "11", "-cp", path, "-d", str(classes), str(SOURCES / f"{name}.java"))
    _run("jar", "cf", str(jar), "-C", str(classes), ".")
    return f"{clients},{jar}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
