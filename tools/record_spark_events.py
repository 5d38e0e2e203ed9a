"""
Records what Spark sends to its listeners when tasks fail: `python -m tools.record_spark_events [version…]`.

Needs `make jars spark`, and every version that is named. Each case of tests/spark runs for real, between two jobs that
mark its place in the application's event log; its lines become tests/spark_listener/recorded/<version>/<case>.jsonl.
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark import impatient, two_hosts
from tests.spark.java_udf import jars
from tests.spark.process import SparkProcess, spark_process
from tests.spark.provision import provision
from tests.spark.sessions import CLUSTER, LOCAL
from tests.spark.settling import MARK, mark
from tests.spark.table import ALONE, CLUSTER_ROWS, LOCAL_ROWS, THROTTLED_CASES, Case
from tests.spark.versions import NEWEST, ROOT, VERSIONS, folder

Work = Callable[[SparkProcess, Path], None]
TARGET = ROOT / "tests" / "spark_listener" / "recorded"
LOCALLY = tuple(row.case for row in (*LOCAL_ROWS, ALONE, *CLUSTER_ROWS[:2]))
ON_A_CLUSTER = tuple(row.case for row in CLUSTER_ROWS[2:])
LEFT_OUT = (
    "SparkListenerEnvironmentUpdate",  # properties of this machine
    "SparkListenerLogStart",
    "org.apache.spark.sql.execution.ui.",  # plans are long and not needed
)


def record(version: str, master: str, cases: tuple[Case, ...]) -> dict[str, list[str]]:
    """Return the lines of each case."""

    def work(driver: SparkProcess, _: Path) -> None:
        for case in cases:
            driver.call(case)
            driver.call(mark)

    parts = split(logged(version, master, work))
    return {case.__name__: part for case, part in zip(cases, parts, strict=False)}


def speculated(version: str) -> dict[str, list[str]]:
    """Return the lines of the case that needs two hosts."""

    def work(driver: SparkProcess, place: Path) -> None:
        driver.call(two_hosts.recorded, log_to(place))

    return {"speculated": next(split(logged(version, LOCAL, work)))}


def throttled(version: str, kafka: Cluster) -> dict[str, list[str]]:
    """Return the lines of the cases that need a broker with a quota."""
    topic = Traffic(kafka).topic()

    def work(driver: SparkProcess, _: Path) -> None:
        """Run each case with a client-id and a quota of its own."""
        for case in THROTTLED_CASES:
            client_id = f"{case.__name__.replace('_', '-')}-on-{version}"
            with closing(Quotas(kafka.connection())) as quotas:
                entity = {"user": "alice", "client-id": client_id}
                quotas.set((entity, impatient.LIMIT))
            driver.call(case, kafka.sasl, client_id, topic)
            driver.call(mark)

    parts = split(logged(version, LOCAL, work))
    return {case.__name__: part for case, part in zip(THROTTLED_CASES, parts, strict=False)}


def logged(version: str, master: str, work: Work) -> list[str]:
    """Return the event log of a driver that does some work."""
    with tempfile.TemporaryDirectory(prefix="recorder-") as name:
        place = Path(name)
        (place / "logs").mkdir()
        conf = {**log_to(place), "spark.jars": jars(place)}
        with spark_process(place, version=version, master=master, conf=conf) as driver:
            work(driver, place)
        newest = max((place / "logs").iterdir(), key=lambda log: log.stat().st_mtime)
        return [scrubbed(line, place, version) for line in newest.open()]


def log_to(place: Path) -> dict[str, str]:
    """Return the properties of a plain event log in that folder."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (place / "logs").as_uri(),
    }


def split(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines between the marks."""
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
    """Return the line without the names of this machine, its user and its folders."""
    for old, new in names(place, version).items():
        line = re.sub(rf"{re.escape(old)}\b", new, line)
    return line


def names(place: Path, version: str) -> Mapping[str, str]:
    """Return the names that must not be seen and their replacements; the longest first."""
    return {
        str(folder(version)): "/opt/spark",
        str(place): "/tmp/job",  # noqa: S108 - written, never used
        str(ROOT / ".venv"): "/opt/python",
        str(ROOT): "/app",
        sys.base_prefix: "/opt/python",
        str(Path.home()): "/home/user",
    }


def write(version: str, cases: Mapping[str, list[str]]) -> None:
    """Write a file for each case."""
    target = TARGET / version
    target.mkdir(parents=True, exist_ok=True)
    for name, lines in cases.items():
        (target / f"{name}.jsonl").write_text("".join(lines))


def main(versions: list[str]) -> int:
    """Record all cases under these versions, or under all."""
    with (
        tempfile.TemporaryDirectory(prefix="recorder-") as place,
        running(Layout.COMBINED, Path(place)) as kafka,
    ):
        for version in versions or VERSIONS:
            if version != NEWEST:
                provision(version)
            write(version, record(version, LOCAL, LOCALLY))
            write(version, record(version, CLUSTER, ON_A_CLUSTER))
            write(version, speculated(version))
            write(version, throttled(version, kafka))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
