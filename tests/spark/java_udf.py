"""Builds `Refused.java`, whose tasks fail by errors of Kafka's Java client."""

import subprocess
from pathlib import Path

from tests.cluster.provision import libs

SOURCE = Path(__file__).with_name("java") / "Refused.java"


def jars(folder: Path) -> str:
    """The jars to name in `spark.jars`; the built one lies in that folder. Raises `ProvisioningError`."""
    import pyspark  # noqa: PLC0415 - for its jars

    (clients,) = libs().glob("kafka-clients-*.jar")
    spark = Path(pyspark.__file__).parent / "jars" / "*"
    classes, jar = folder / "classes", folder / "refused.jar"
    path = f"{clients}:{spark}"
    _run("javac", "--release", "11", "-cp", path, "-d", str(classes), str(SOURCE))
    _run("jar", "cf", str(jar), "-C", str(classes), ".")
    return f"{clients},{jar}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
