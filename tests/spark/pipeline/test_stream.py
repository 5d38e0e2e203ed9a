"""
A stream from a real topic is read exactly once, whenever it is killed.

It is killed at the two worst moments: when a batch is written but not committed, and when one of its two tables is committed and the other
is not.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.traffic import Traffic
from tests.integration.eventually import eventually
from tests.pipeline.log_lines import captured, values
from tests.spark.connector.provision import jars
from tests.spark.pipeline import stream_jobs
from tests.spark.process import spark_process
from tests.spark.versions import CONNECTOR

from quotascope.pipeline.ingest import Tables
from quotascope.pipeline.ingest import ingest as ingest_here

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

LOG = captured()[:1_800]
"""With all that is forwarded."""
NONSENSE = [b"not a request %d" % number for number in range(106)]
TWICE = LOG[:100]
"""Sent again, as a shipper does that did not hear its broker's answer."""
MESSAGES = [
    text
    for number, each in enumerate([*LOG, *TWICE])
    for text in ([each] if number % 18 else [each, NONSENSE[number // 18]])
]
"""Each batch has some of each; partitions of topics follow from lines that came before."""
CHARGED = ("partitions_created", "partitions_added", "partitions_deleted", "mutations")
CONF = {"spark.jars": ",".join(str(jar) for jar in jars())}


@pytest.fixture
def topic(kafka: Cluster, traffic: Traffic) -> str:
    """A real log and some nonsense, in three partitions."""
    name = traffic.topic(partitions=3)
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.admin})
    for number, text in enumerate(MESSAGES):
        producer.produce(name, text, partition=number % 3)
    producer.flush(30)
    return name


def killed(folder: Path, name: str, *arguments: Any) -> None:
    """Start the stream, and kill its driver, Python and JVM, where it waits."""
    waiting = folder / "waiting"
    waiting.unlink(missing_ok=True)
    with spark_process(folder / f"before-{name}", version=CONNECTOR, conf=CONF) as driver:  # fmt: skip
        (jvm,) = _children(driver.pid)
        job = f"{stream_jobs.__name__}:run"
        driver.send([job, [*arguments, str(folder), name], {}])
        eventually(lambda: _must(waiting.exists(), driver.output()), seconds=150)
        os.kill(jvm, signal.SIGKILL)
        os.kill(driver.pid, signal.SIGKILL)
        driver.popen.wait(60)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


def _must(true: bool, told: str) -> None:  # noqa: FBT001 - for `eventually`
    assert true, told[-2_000:]


def test_killed_and_started_again(kafka: Cluster, topic: str, tmp_path: Path) -> None:
    """Nothing is lost and nothing is there twice: the tables hold what one process reads from a file with the same lines."""
    where = (kafka.admin, topic)
    killed(tmp_path, "requests", *where)
    killed(tmp_path, "quarantine", *where)
    with spark_process(tmp_path / "last", version=CONNECTOR, conf=CONF) as driver:
        reports = driver.call(stream_jobs.run, *where, str(tmp_path))
        again = driver.call(stream_jobs.run, *where, str(tmp_path))
    tables = Tables.create(str(tmp_path / "tables"))
    requests, quarantine = (table.read() for table in tables)
    assert len(requests) == len(set(requests["identity"].to_pylist()))
    assert _told(requests) == _told(_read_here(tmp_path))
    assert Counter(quarantine["text"].to_pylist()) == Counter(NONSENSE)
    assert [number for number, *_ in reports] == [1, 2]
    assert reports[0][2] == 0, "the requests of the batch were committed before"
    assert reports[0][3] > 0, "its quarantine was not"
    assert again == []


def _read_here(folder: Path) -> pa.Table:
    log = folder / "same.log"
    log.write_bytes(b"\n".join(MESSAGES))
    ingest_here([str(log)], str(folder / "here"))
    return Tables.create(str(folder / "here")).requests.read()


def _told(requests: pa.Table) -> list[Any]:
    """The clients' requests, and what was charged in all: a controller's line that came a batch before its client's is there, too."""
    clients = requests.filter(pc.invert(requests["forwarded"]))
    identities = sorted(values(clients, "identity"))
    return [identities, *(pc.sum(requests[name]).as_py() for name in CHARGED)]
