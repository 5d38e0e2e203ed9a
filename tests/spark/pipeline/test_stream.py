"""
A stream from a real topic is read exactly once, whenever it is killed, and reaches what-if as a file of its lines does.

It is killed between the commits of a batch to its two tables, before that of what shadows made of it, and when all is
committed but Spark does not know; tests/pipeline/ingest/test_interrupted.py kills at the others, without Spark.
"""

import os
import re
import signal
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from zlib import crc32

import confluent_kafka
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.traffic import Traffic
from tests.integration.eventually import eventually
from tests.pipeline.log_lines import captured, values
from tests.pipeline.replay.sums import summed
from tests.spark.connector.provision import jars
from tests.spark.pipeline import stream_jobs
from tests.spark.process import SparkProcess, spark_process
from tests.spark.versions import CONNECTOR

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions, IngestTables
from quotascope.pipeline.replay import RESULTS, Mode, ReplaySettings, replay
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.whatif import what_if
from quotascope.pipeline.summary import ReplaySummary
from quotascope.pipeline.table import Table
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate, read_candidates

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

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
CHARGED = ("partitions_created", "partitions_added", "partitions_deleted", "mutations_charged")
TIGHT = """
quotas:
  - user: <default>
    producer_byte_rate: 5000
    consumer_byte_rate: 5000
    request_percentage: 0.1
    controller_mutation_rate: 1
"""


def with_connector(folder: Path) -> AbstractContextManager[SparkProcess]:
    return spark_process(folder, version=CONNECTOR, conf={"spark.jars": ",".join(map(str, jars()))})


@pytest.fixture
def topic(kafka: Cluster, traffic: Traffic) -> str:
    """Return a topic with a real log and some nonsense; each user's lines stay in order, which what-if replays."""
    name = traffic.topic(partitions=3)
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.admin})
    for text in MESSAGES:
        user = re.search(rb'"principal":"([^"]*)"', text)
        partition = crc32(user.group(1) if user else text) % 3
        producer.produce(name, text, partition=partition)
    producer.flush(30)
    return name


def killed(folder: Path, name: str, *arguments: Any) -> None:
    """Start the stream, and kill its driver, Python and JVM, where it waits."""
    waiting = folder / "waiting"
    waiting.unlink(missing_ok=True)
    with with_connector(folder / f"before-{name.replace(' ', '-')}") as driver:
        (jvm,) = Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text().split()
        driver.send([f"{stream_jobs.__name__}:run", [*arguments, str(folder), name], {}])

        def waits() -> None:
            assert waiting.exists(), driver.output()[-2_000:]

        eventually(waits, seconds=250)
        os.kill(int(jvm), signal.SIGKILL)
        os.kill(driver.pid, signal.SIGKILL)
        driver.popen.wait(60)


def test_killed_and_started_again(kafka: Cluster, topic: str, tmp_path: Path) -> None:
    """A stream that is killed and started again loses and repeats no line."""
    where = (kafka.admin, topic)
    (tmp_path / "candidates.yaml").write_text(TIGHT)
    for place in ("quarantine", "shadow", "the end"):
        killed(tmp_path, place, *where)
    with with_connector(tmp_path / "last") as driver:
        printed = driver.call(stream_jobs.command, *where, str(tmp_path))
        again = driver.call(stream_jobs.run, *where, str(tmp_path))
    tables = IngestTables.create(str(tmp_path / "tables"))
    requests, quarantine = (table.read() for table in tables)
    assert len(requests) == len(set(requests["identity"].to_pylist()))
    log = tmp_path / "same.log"
    log.write_bytes(b"\n".join(MESSAGES))
    ingest_logs([str(log)], str(tmp_path / "here"), IngestOptions(broker="1"), engine=EngineChoice.LOCAL)
    assert _reported(requests) == _reported(IngestTables.create(str(tmp_path / "here")).requests.read())
    assert Counter(quarantine["text"].to_pylist()) == Counter(NONSENSE)
    batches = [line for line in printed if line.startswith("batch ")]
    assert [line.split(":")[0] for line in batches] == ["batch 1", "batch 2"]
    assert ": 0 lines: 0 requests added" in batches[0], "both tables had the batch"
    assert again == []
    _assert_shadow_is_whatif(tmp_path)
    streamed, read = (_what_if(tmp_path / name) for name in ("tables", "here"))
    assert any(candidate.hit for candidate in read.candidates)
    assert (streamed.candidates, streamed.groups) == (read.candidates, read.groups)


def _assert_shadow_is_whatif(folder: Path) -> None:
    """Assert that the decisions of the steps are those of a replay of the requests, by broker."""
    candidates = read_candidates(folder / "candidates.yaml")
    decided = Table.open(str(folder / "tables" / "shadow")).read(RESULTS.names)
    requests = History.open(str(folder / "tables")).detail.read()
    whole = replay(requests, candidates, settings=ReplaySettings(per_broker=True))
    streamed = summed([decided])
    assert streamed == summed([whole])
    assert {key[-1] for key, each in streamed.items() if each[2]} >= {"produce", "fetch", "request"}


def _what_if(folder: Path) -> ReplaySummary:
    """The answer under quotas that throttle a client of each kind."""
    limits = {"producer_byte_rate": 5_000.0, "consumer_byte_rate": 5_000.0, "request_percentage": 0.1}
    tried = [Candidate(name="tight", quotas=QuotaSet({QuotaEntity(DEFAULT, None): limits}))]
    return what_if(str(folder), tried, Mode.CLOSED_LOOP, engine=EngineChoice.LOCAL).summary


def _reported(requests: pa.Table) -> list[Any]:
    """Return the clients' requests and their total charges, with a controller's line of an earlier batch."""
    clients = requests.filter(pc.invert(requests["forwarded"]))
    identities = sorted(values(clients, "identity"))
    return [identities, *(pc.sum(requests[name]).as_py() for name in CHARGED)]
