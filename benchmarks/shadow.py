"""
A shadow limit, and then the same limit set, under the same load on two real brokers.

`python -m benchmarks shadow --minutes 10`.

Nine clients send on a clock of their own, each request on a connection that is not muted, so that no throttle changes
what is asked for: what is throttled in the second half is what an open loop predicts from the first. The stream is
killed twice in the first half. A client that waits for its throttles asks for less under a limit that is set;
docs/guides/shadow.md says what that means.
"""

import argparse
import json
import os
import signal
import socket
import struct
import tempfile
import threading
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka as kafka_python
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.output import say
from kafka.protocol.admin import CreateTopicsRequest
from kafka.record import MemoryRecordsBuilder
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from tests.cluster.cluster import Cluster, Layout, Plugin, running
from tests.cluster.quotas import Quotas
from tests.integration.exporter import serving, settings_for
from tests.spark.connector.provision import jars
from tests.spark.process import spark_process
from tests.spark.versions import CONNECTOR

from quotascope.cli.main import app
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.replay import ReplaySettings, replay
from quotascope.pipeline.runs.shadow import COUNTED, SHADOW, added_up
from quotascope.pipeline.table import Table
from quotascope.quotas.candidates import read_candidates

_TOPICS = 19
"""CreateTopics, whose header is flexible in version 7."""
LOG, LOAD, DATA = "kafka-request-log", "load", "data"
REST_S = 20.0
"""Between the halves: longer than all windows together."""
ENDLESS = 9e15
KEYS = {
    "produce": "producer_byte_rate",
    "fetch": "consumer_byte_rate",
    "request": "request_percentage",
    "topics": "controller_mutation_rate",
}


@dataclass(frozen=True)
class Client:
    """Requests of a client, their frequency on each broker, and its limit: bytes/s, percent, or partitions/s."""

    name: str
    size: int
    every_s: float
    limit: float
    burst: int = 1
    """Requests a second apart, each time."""

    @property
    def kind(self) -> str:
        """Short name of its quota type."""
        return self.name.partition("-")[0]


CLIENTS = (
    Client("produce-heavy", 20_000, 0.25, 40_000),
    Client("produce-near", 10_000, 0.25, 32_000),
    Client("produce-light", 10_000, 0.5, 40_000),
    Client("fetch-heavy", 900_000, 26, 100_000, burst=2),
    Client("fetch-light", 90_000, 5, 100_000),
    Client("request-heavy", 0, 0.25, 0.001),
    Client("request-light", 0, 1, 500),
    Client("topics-heavy", 12, 4, 2),
    Client("topics-light", 2, 4, 2),
)


def produce(client: Client, partition: int) -> bytes:
    """Produce, version 3."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=client.size + 1_000)
    builder.append(timestamp=None, key=None, value=bytes(client.size))
    builder.close()
    records = bytes(builder.buffer())
    return (
        struct.pack(">hhii", -1, 1, 5_000, 1) + _text(LOAD) + struct.pack(">iii", 1, partition, len(records)) + records
    )


def fetch(client: Client, partition: int) -> bytes:
    """Fetch, version 4."""
    return (
        struct.pack(">iiiibi", -1, 0, 1, client.size, 0, 1)
        + _text(DATA)
        + struct.pack(">iiqi", 1, partition, 0, client.size)
    )


def request(client: Client, partition: int) -> bytes:
    """Metadata of all topics, version 4."""
    del client, partition
    return struct.pack(">ib", -1, 0)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def topics(client: Client, number: int) -> bytes:
    """CreateTopics, version 7, that only validates: charged as any other."""
    topic = CreateTopicsRequest.CreatableTopic(
        name=f"new-{number}", num_partitions=client.size, replication_factor=1, assignments=[], configs=[]
    )
    creation = CreateTopicsRequest(topics=[topic], timeout_ms=5_000, validate_only=True)
    body: bytes = creation.encode(version=7)
    return bytes(body)


BODIES: dict[str, tuple[int, int, Callable[[Client, int], bytes]]] = {
    "produce": (0, 3, produce),
    "fetch": (1, 4, fetch),
    "request": (3, 4, request),
    "topics": (_TOPICS, 7, topics),
}


class Sender:
    """
    One client on one broker; it sends on time, whatever is throttled.

    A connection is used again when its mute is over.
    """

    def __init__(self, client: Client, address: str, partition: int) -> None:
        host, _, port = address.rpartition(":")
        self._client, self._place, self._partition = client, (host, int(port)), partition
        self._free: list[tuple[float, socket.socket]] = []
        self.sent = self.throttled_ms = 0
        self.refused = 0
        self.latest_s = 0.0

    def run(self, begin: float, end: float) -> None:
        """Send from `begin` on until `end`, of the monotonic clock."""
        key, version, make = BODIES[self._client.kind]
        head = struct.pack(">hhi", key, version, 1) + _text(self._client.name)
        body = head + (b"\0" if key == _TOPICS else b"") + make(self._client, self._partition)
        number = 0
        while True:
            turn, of_burst = divmod(number, self._client.burst)
            due = begin + turn * self._client.every_s + of_burst
            if due >= end:
                break
            time.sleep(max(0.0, due - time.monotonic()))
            self.latest_s = max(self.latest_s, time.monotonic() - due)
            self._send(struct.pack(">i", len(body)) + body, key)
            number += 1
        for _, connection in self._free:
            connection.close()

    def _send(self, framed: bytes, key: int) -> None:
        now = time.monotonic()
        place = next((n for n, (free_at, _) in enumerate(self._free) if free_at < now), None)
        if place is None:
            connection = socket.create_connection(self._place, 30)
        else:
            connection = self._free.pop(place)[1]
        connection.sendall(framed)
        (length,) = struct.unpack(">i", _exactly(connection, 4))
        answer = _exactly(connection, length)
        offset = {0: length - 4, _TOPICS: 5}.get(key, 4)
        (throttle_ms,) = struct.unpack_from(">i", answer, offset)
        self.sent += 1
        self.throttled_ms += throttle_ms
        self._free.append((time.monotonic() + throttle_ms / 1_000 + 0.3, connection))


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = connection.recv(min(1 << 20, count - len(parts)))
        if not part:
            raise ConnectionError("the broker closed the connection")
        parts += part
    return parts


def half(cluster: Cluster, seconds: float) -> tuple[int, int]:
    """Let all clients send for so long; return the begin and the end, epoch ms."""
    begin = time.monotonic() + 1
    began_ms = time.time_ns() // 1_000_000
    senders = [
        Sender(client, _admin(cluster, node), number)
        for client in CLIENTS
        for number, node in enumerate((1, 2))
        if client.kind != "topics" or number
    ]
    threads = [threading.Thread(target=sender.run, args=(begin, begin + seconds)) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    late = max(sender.latest_s for sender in senders)
    say(
        f"  sent {sum(sender.sent for sender in senders):,} requests, the latest by {late:.2f} s; throttles in answers {sum(sender.throttled_ms for sender in senders) / 1_000:.1f} s"
    )
    return began_ms, time.time_ns() // 1_000_000


def _admin(cluster: Cluster, node: int) -> str:
    properties = cluster.nodes[node]._properties["listeners"]  # noqa: SLF001 - tests know no other way
    return next(listener.partition("://")[2] for listener in properties.split(",") if listener.startswith("ADMIN://"))


@contextmanager
def shipping(cluster: Cluster) -> Iterator[None]:
    """Send the lines of the brokers' request logs to the topic, each broker's into the partition of its number."""
    stop = threading.Event()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.admin, "client.id": "shipper", "linger.ms": 500, "log_level": 0}
    )

    def ship() -> None:
        rest_of_line = dict.fromkeys((1, 2), b"")
        with ExitStack() as stack:
            logs = {
                number: stack.enter_context(cluster.nodes[number].request_log.open("rb")) for number in rest_of_line
            }
            over = False
            while not over:
                over = stop.wait(0.5)
                for number, log in logs.items():
                    *lines, rest_of_line[number] = (rest_of_line[number] + log.read()).split(b"\n")
                    for line in lines:
                        producer.produce(LOG, line, partition=number)
                producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=ship)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def stream(_: SparkSession, options: list[str]) -> None:
    """Run the command in a driver."""
    try:
        app(["shadow", "stream", *options], standalone_mode=False)
    except BaseException:  # nothing waits for the answer
        traceback.print_exc()
        raise


class Stream:
    """The stream in a driver that is killed, and started again."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        self._folder, self._options, self._runs = folder, options, 0
        self._stack = ExitStack()

    def start(self) -> None:
        """Start it, or start it again."""
        self._runs += 1
        self._stack = ExitStack()
        conf = {"spark.jars": ",".join(str(jar) for jar in jars())}
        driver = spark_process(self._folder / f"driver-{self._runs}", version=CONNECTOR, conf=conf)
        self.driver = self._stack.enter_context(driver)
        self.driver.send(["benchmarks.shadow:stream", [self._options], {}])

    def kill(self) -> None:
        """Kill Python and the JVM."""
        children = Path(f"/proc/{self.driver.pid}/task/{self.driver.pid}/children").read_text()
        for pid in [*map(int, children.split()), self.driver.pid]:
            os.kill(pid, signal.SIGKILL)
        with suppress(Exception):
            self._stack.close()


class Samples:
    """The throttle times that an exporter shows of the shadow, every other second, until it is stopped."""

    def __init__(self, folder: Path, cluster: Cluster, candidates: Path) -> None:
        settings = settings_for(cluster.brokers, cluster.admin)
        shadow = {"file": str(candidates)}
        self._serving = serving(folder, {**settings, "shadow": shadow})
        self._stop = threading.Event()
        self.seen: dict[tuple[str, str], list[float]] = {}
        """By client-id and broker."""
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        with self._serving as exporter:
            while not self._stop.wait(2):
                text = exporter.get("/metrics").text
                for family in text_string_to_metric_families(text):
                    if family.name == "kafka_quota_shadow_throttle_time_seconds":
                        for sample in family.samples:
                            key = sample.labels["client_id"], sample.labels["broker"]
                            self.seen.setdefault(key, []).append(sample.value)


def decided_until(port: int) -> float:
    """Return the time of the driver's last decision, epoch s; 0 when it reports none."""
    with (
        suppress(OSError, ValueError),
        urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=10) as answer,
    ):
        for line in answer.read().decode().splitlines():
            if line.startswith("quotascope_shadow_decided_timestamp_seconds "):
                return float(line.split()[1])
    return 0.0


def wait_until_decided(port: int, until_ms: int) -> None:
    """Wait until the stream has decided all requests until then, three minutes at most."""
    deadline = time.monotonic() + 180
    while decided_until(port) * 1_000 < until_ms and time.monotonic() < deadline:
        time.sleep(2)
    say(f"  decided until {decided_until(port):.0f}, needed {until_ms / 1_000:.0f}")


def compare(
    usage: Path, candidates: Path, first_half: tuple[int, int], second: tuple[int, int], samples: Samples
) -> dict[str, Any]:
    """Predicted and logged, by client."""
    rows = Table.open(str(usage / "shadow"), schema=SHADOW).read()
    decided = pc.field("timestamp")
    predicted: Any = added_up(rows.filter((decided > first_half[0] - 1_000) & (decided <= first_half[1] + 5_000)))
    history: Any = History.open(str(usage)).detail.read()
    times = history["timestamp"]
    halves = [
        history.filter(
            pc.and_(pc.greater_equal(times, pa.scalar(begin - 1_000)), pc.less_equal(times, pa.scalar(end + 5_000)))
        )
        for begin, end in (first_half, second)
    ]
    replayed = replay(halves[0], read_candidates(candidates), settings=ReplaySettings())
    sums = {
        table: {(row["client_id"], row["quota_type"]): tuple(row[name] for name in COUNTED) for row in rows.to_pylist()}
        for table, rows in (("stream", predicted), ("whatif", replayed))
    }
    report: dict[str, Any] = {"equals whatif": sums["stream"] == sums["whatif"], "clients": {}}
    for client in CLIENTS:
        rows_of_client = predicted.filter(pc.equal(predicted["client_id"], pa.scalar(client.name))).to_pylist()
        logged, logged_before = (
            part.filter(pc.equal(part["client_id"], pa.scalar(client.name))).to_pylist() for part in reversed(halves)
        )
        sampled = {
            broker: sum(samples_of_broker)
            / len(samples_of_broker)
            * sum(row["broker"] == broker for row in logged_before)
            for (name, broker), samples_of_broker in samples.seen.items()
            if name == client.name
        }
        report["clients"][client.name] = {
            "exporter": sum(sampled.values()) if sampled else None,
            "requests": [len(logged_before), len(logged)],
            "throttled": [sum(row["throttled_requests"] for row in rows_of_client), sum(row["throttle_ms"] > 0 for row in logged)],
            "seconds": [sum(row["throttled_ms"] for row in rows_of_client) / 1e3, sum(max(0, row["throttle_ms"]) for row in logged) / 1e3],
            "refused": [sum(row["refused_requests"] for row in rows_of_client), sum(row["refused"] for row in logged)],
        }  # fmt: skip
    requests = IngestTables.create(str(usage)).requests.read(["identity", "file"])
    report["repeated"] = len(requests) - len(set(requests["identity"].to_pylist()))
    report["read"] = len(requests)
    return report


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--port", type=int, default=9_759, help="of the stream")
    parser.add_argument("--keep", type=Path, help="a folder for all files")


def main(options: argparse.Namespace) -> int:
    """Run both halves, and print what was predicted and what was logged."""
    seconds = options.minutes * 60
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(
            running(Layout.PAIR, folder / "kafka", plugin=Plugin(newest=True, logs_requests=True))
        )
        _topics(cluster)
        quotas = stack.enter_context(closing(Quotas(cluster.connection())))
        rules = [
            ({"user": "ANONYMOUS", "client-id": client.name}, {KEYS[client.kind]: client.limit}) for client in CLIENTS
        ]
        quotas.set(*((entity, dict.fromkeys(keys, ENDLESS)) for entity, keys in rules))
        candidates = folder / "candidates.yaml"
        candidates.write_text("quotas:\n" + "".join(f"  - {json.dumps(entity | keys)}\n" for entity, keys in rules))
        usage = folder / "usage"
        flags = [
            "--topic",
            f"kafka://{cluster.admin}/{LOG}",
            "--candidates",
            str(candidates),
            "--into",
            str(usage),
            "--broker-pattern",
            "-([0-9]+)$",
            "--every",
            "5s",
            "--hold",
            "5s",
            "--port",
            str(options.port),
        ]
        stack.enter_context(shipping(cluster))
        shadow = Stream(folder, flags)
        shadow.start()

        def killing() -> None:
            for _ in range(options.kills):
                time.sleep(seconds / (options.kills + 1))
                shadow.kill()
                say("  the stream was killed")
                time.sleep(2)
                shadow.start()
            restarted.set()
            over.wait()  # the driver ends with the thread that has started it

        restarted, over = threading.Event(), threading.Event()
        stack.callback(over.set)
        say("half 1: a shadow")
        killer = threading.Thread(target=killing, daemon=True)
        killer.start()
        samples = Samples(folder / "exporter", cluster, candidates)
        first_half = half(cluster, seconds)
        samples.stop()
        restarted.wait()
        time.sleep(REST_S)
        quotas.set(*rules)
        time.sleep(1)
        say("half 2: the limits are set")
        second = half(cluster, seconds)
        wait_until_decided(options.port, second[1])
        shadow.kill()
        report = compare(usage, candidates, first_half, second, samples)
        report["written"] = sum(cluster.nodes[number].request_log.read_bytes().count(b"\n") for number in (1, 2))
    say(json.dumps(report, indent=1))
    return 0


def _topics(cluster: Cluster) -> None:
    with closing(kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
        topics = {name: {"assignments": {0: [1], 1: [2]}} for name in (LOAD, DATA)}
        topics[LOG] = {"num_partitions": 3, "replication_factor": 1}  # type: ignore[dict-item]
        admin.create_topics(topics, wait_for_metadata=True)
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.admin, "batch.size": 30_000, "log_level": 0})
    for partition in (0, 1):
        for _ in range(1_000):
            producer.produce(DATA, bytes(1_000), partition=partition)
    producer.flush(30)
