"""
Records what Spark tells its listeners when tasks fail: `python -m tools.record_spark_events [version…]`.

Needs `make jars spark`, and every version that is named. Each case of tests/spark runs for real, between two jobs that mark its
place in the application's event log; its lines become tests/spark_listener/recorded/<version>/<case>.jsonl.
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark import failures, losses, streams
from tests.spark.java_udf import jars
from tests.spark.process import spark_process
from tests.spark.provision import provision
from tests.spark.sessions import CLUSTER, LOCAL
from tests.spark.settling import MARK, mark
from tests.spark.versions import NEWEST, ROOT, VERSIONS, folder

Case = Callable[[SparkSession], None]
TARGET = ROOT / "tests" / "spark_listener" / "recorded"
IN_PYTHON: tuple[Case, ...] = (
    failures.python_exception,
    failures.gives_up,
    failures.confluent_quota,
    failures.kafka_python_quota,
    failures.chained_quota,
    failures.handled_quota,
    failures.confluent_timeout,
    failures.kafka_python_timeout,
    failures.confluent_other,
    failures.quoted_source,
    failures.quoted_message,
    failures.exception_group,
    failures.worker_exit,
)
LOCALLY: tuple[Case, ...] = (
    *IN_PYTHON,
    losses.jvm_quota,
    losses.jvm_timeout,
    losses.shuffle_lost,
    losses.cancelled,
    streams.restarted,
)
ON_A_CLUSTER: tuple[Case, ...] = (
    losses.executor_killed,
    losses.shuffle_lost_with_executor,
)
LEFT_OUT = (
    "SparkListenerEnvironmentUpdate",  # the machine's own properties
    "SparkListenerLogStart",
    "org.apache.spark.sql.execution.ui.",  # plans: long, and nobody reads them
)


def record(version: str, master: str, cases: tuple[Case, ...]) -> dict[str, list[str]]:
    """The lines of each case."""
    with tempfile.TemporaryDirectory(prefix="recorder-") as name:
        place = Path(name)
        logs = place / "logs"
        logs.mkdir()
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": logs.as_uri(),
            "spark.jars": jars(place),
        }
        with spark_process(place, version=version, master=master, conf=conf) as driver:
            for case in cases:
                sys.stderr.write(f"{version}: {case.__name__}\n")
                driver.call(case)
                driver.call(mark)
        (log,) = logs.iterdir()
        lines = [scrubbed(line, place, version) for line in log.open()]
    parts = split(lines)
    return {case.__name__: part for case, part in zip(cases, parts, strict=False)}


def split(lines: list[str]) -> Iterator[list[str]]:
    """The lines between the marks."""
    part: list[str] = []
    marked = False
    for line in lines:
        event = json.loads(line)["Event"]
        if event == "SparkListenerJobStart" and MARK in line:
            marked = True
            yield part
            part = []
        elif not marked and not event.startswith(LEFT_OUT):
            part.append(line)
        marked = marked and event != "SparkListenerJobEnd"


def scrubbed(line: str, place: Path, version: str) -> str:
    """The line without the names of this machine, its user and its folders."""
    for old, new in names(place, version).items():
        line = re.sub(rf"{re.escape(old)}\b", new, line)
    return line


def names(place: Path, version: str) -> Mapping[str, str]:
    """What must not be seen, and what stands in its place; the longest first."""
    return {
        str(folder(version)): "/opt/spark",
        str(place): "/tmp/job",  # noqa: S108 - written, never used
        str(ROOT / ".venv"): "/opt/python",
        str(ROOT): "/app",
        sys.base_prefix: "/opt/python",
        str(Path.home()): "/home/user",
    }


def write(version: str, cases: Mapping[str, list[str]]) -> None:
    """A file for each case."""
    target = TARGET / version
    target.mkdir(parents=True, exist_ok=True)
    for name, lines in cases.items():
        (target / f"{name}.jsonl").write_text("".join(lines))


def main(versions: list[str]) -> int:
    """Record all cases under these versions, or under all."""
    for version in versions or VERSIONS:
        if version != NEWEST:
            provision(version)
        write(version, record(version, LOCAL, LOCALLY))
        write(version, record(version, CLUSTER, ON_A_CLUSTER))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
