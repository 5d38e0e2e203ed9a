"""
What a simulated queue predicts, and what is measured: `python -m benchmarks.benefit --threads 1 --aggressor large_produces`.

On a real broker a victim sends 50 requests a second and a steady client has requests of a few milliseconds, on the same schedule in each phase:
alone, with an aggressor, without it, and with it under a `request_percentage` of half of what it used. From the log of the first two phases, the
victim's queue times in the other two are predicted.
"""

import argparse
import json
import os
import random
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from multiprocessing import Event, Process
from multiprocessing.synchronize import Event as Stop
from pathlib import Path
from typing import Any

import kafka as kafka_python
import numpy as np
import pyarrow as pa
from benchmarks.blame import broker
from kafka.record import MemoryRecordsBuilder
from numpy.typing import NDArray
from rich.console import Console
from tests.cluster.flood import metadata, small_fetches
from tests.cluster.quotas import Quotas

from quotascope.cli.main import app
from quotascope.metrics import QuotaEntity
from quotascope.pipeline.blame import intervals
from quotascope.pipeline.blame.queueing import logged_queue
from quotascope.pipeline.history.charges import history_of
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.replay.closed_loop import NEVER
from quotascope.pipeline.replay.results import lateness
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.table import Table
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

_SAY = Console(highlight=False, soft_wrap=True).print
SECONDS = {"quiet": 3.0, "with": 18.0, "without": 18.0, "throttled": 20.0}
"""Of each phase of a round, after 2 s for the clients to begin."""
WARM_S = 10.0
TOPICS, PARTITIONS = 60, 16
"""Topics beside it, which make Metadata long; its partitions."""
_NO_LIMIT = 10_000.0
"""
Percent: with a request quota of any client, the local time of all requests ends with the quota's decision, before the response is built
(Kafka 4.4: `Request.requestThreadTimeNanos`, called if `ClientRequestQuotaManager.quotasEnabled`); without one, after it. So one is set in
all phases.
"""
LATER_S = 8.0
"""After so long under a quota its first burst is over, which begins with empty windows."""
_VICTIM, _STEADY, _AGGRESSOR = "victim", "steady", "aggressor"
CONNECTIONS = {"large_produces": (3, 0.01), "small_fetches": (4, 0.002), "metadata": (5, 0.003)}
"""Of each aggressor, and its mean pause between requests, s."""
_OWN = "own"
"""A topic with a partition for each connection: a second Produce to a partition waits for its lock, in a handler thread."""


def produce(partition: int, records: int, size: int, codec: int) -> bytes:
    """Produce, version 3, of so many records of so many bytes."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 23)
    for _ in range(records):
        builder.append(timestamp=None, key=None, value=bytes(size))
    builder.close()
    batch = bytes(builder.buffer())
    place = struct.pack(">iii", 1, partition, len(batch))
    return struct.pack(">hhiih", -1, 1, 5_000, 1, len(_OWN)) + _OWN.encode() + place + batch


BODIES: dict[str, tuple[int, int, Callable[[int], bytes]]] = {
    "victim": (0, 3, lambda partition: produce(partition, 1, 200, 0)),
    "steady": (0, 3, lambda partition: produce(partition, 14_000, 30, 1)),
    "large_produces": (0, 3, lambda partition: produce(partition, 20, 300_000, 1)),
    "small_fetches": (1, 4, lambda _: small_fetches()),
    "metadata": (3, 4, lambda _: metadata()),
}
"""API key, version, and body; `steady` takes 2 ms of a handler thread."""


def request(name: str, kind: str, partition: int) -> bytes:
    """A request of a client id, as it is sent."""
    key, version, body = BODIES[kind]
    text = struct.pack(">hhih", key, version, 1, len(name)) + name.encode() + body(partition)
    return struct.pack(">i", len(text)) + text


def send(address: str, message: bytes, pauses: Sequence[float], *, on_time: bool, stop: Stop) -> None:
    """Send on one connection until stopped: on time, whatever the answers take, or with a pause after each answer."""
    host, _, port = address.rpartition(":")
    at, number = time.monotonic(), 0
    with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rb") as answers:
        while not stop.is_set():
            at = (at if on_time else time.monotonic()) + pauses[number % len(pauses)]
            time.sleep(max(0.0, at - time.monotonic()))
            connection.sendall(message)
            answers.read(*struct.unpack(">i", answers.read(4)))
            number += 1


def drawn(mean_s: float, seed: int) -> list[float]:
    """Pauses, the same each time."""
    source = random.Random(seed)  # noqa: S311 - a schedule
    return [source.expovariate(1 / mean_s) for _ in range(5_000)]


def client(calls: Sequence[tuple[Any, ...]], on_time: bool, stop: Stop) -> None:  # noqa: FBT001 - of a process
    """All connections of a client, as a process that yields to the broker: clients have machines of their own."""
    os.nice(10)
    threads = [threading.Thread(target=send, args=call, kwargs={"on_time": on_time, "stop": stop}) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def phase(address: str, aggressor: str | None, threads: int, seconds: float) -> tuple[int, int]:
    """Let the clients send, and return from when to when, epoch ms."""
    stop = Event()
    clients: list[tuple[list[tuple[Any, ...]], bool]] = [
        ([(address, request(_VICTIM, "victim", 0), [0.02])], True),
        ([(address, request(_STEADY, "steady", seed), drawn(0.025, seed)) for seed in range(1, 4 * threads)], True),
    ]
    if aggressor is not None:
        connections, pause_s = CONNECTIONS[aggressor]
        places = range(PARTITIONS - connections, PARTITIONS)
        clients.append(
            ([(address, request(_AGGRESSOR, aggressor, each), drawn(pause_s, each)) for each in places], False)
        )
    processes = [Process(target=client, args=(*each, stop)) for each in clients]
    for process in processes:
        process.start()
    time.sleep(2)
    begin_ms = time.time_ns() // 1_000_000
    time.sleep(seconds)
    end_ms = time.time_ns() // 1_000_000
    stop.set()
    for process in processes:
        process.join()
    return begin_ms, end_ms


def measured(folder: Path, threads: int, aggressor: str, rounds: int) -> None:
    """Write all requests to `usage`, and by round when its phases were, with the quota of the last one, to `rounds.json`."""
    found, usage = [], folder / "usage"
    with broker(threads, folder / "kafka") as cluster, closing(Quotas(cluster.connection())) as quotas:
        with closing(kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
            more = {f"more-{number}": 1 for number in range(TOPICS)}
            made = {
                name: {"num_partitions": count, "replication_factor": 1}
                for name, count in {_OWN: PARTITIONS, **more}.items()
            }
            admin.create_topics(made, wait_for_metadata=True)
        log = str(cluster.brokers[0].request_log)
        phase(cluster.admin, aggressor, threads, WARM_S)
        for _ in range(rounds):
            spans: dict[str, tuple[int, int]] = {}
            percent = 0.0
            quotas.clear()
            quotas.set(({"user": "ANONYMOUS", "client-id": _VICTIM}, {"request_percentage": _NO_LIMIT}))
            for name, seconds in SECONDS.items():
                if name == "throttled":
                    app(["ingest", log, "--broker", "1", "--into", str(usage)], standalone_mode=False)
                    percent = used(usage, *spans["with"]) / 2
                    quotas.set(({"user": "ANONYMOUS", "client-id": _AGGRESSOR}, {"request_percentage": percent}))
                alone = name in {"quiet", "without"}
                spans[name] = phase(cluster.admin, None if alone else aggressor, threads, seconds)
                time.sleep(1)
            found.append({"percent": percent, "spans": spans})
        app(["ingest", log, "--broker", "1", "--into", str(usage)], standalone_mode=False)
    shutil.rmtree(folder / "kafka")
    (folder / "rounds.json").write_text(json.dumps({"threads": threads, "aggressor": aggressor, "rounds": found}))


def between(usage: Path, begin_ms: float, end_ms: float) -> tuple[pa.Table, intervals.Intervals, NDArray[np.str_]]:
    """Requests that were completed then: their rows, those of the broker's handler threads, and the client of each of these."""
    table = Table.open(f"{usage}/requests", schema=REQUESTS).read().sort_by("position")
    times = table["completed"].to_numpy()
    rows = table.filter(pa.array((times >= begin_ms) & (times < end_ms)))
    rows = rows.set_column(rows.column_names.index("position"), "position", pa.array(np.arange(len(rows))))
    pool = intervals.intervals(rows).of_pool("1")
    return rows, pool, np.array([each.client_id for each in pool.names])[pool.groups]


def used(usage: Path, begin_ms: int, end_ms: int) -> float:
    """What the aggressor used of a handler thread, percent."""
    _, pool, clients = between(usage, begin_ms, end_ms)
    held = (pool.released - pool.dequeued)[clients == _AGGRESSOR].sum()
    return round(float(held) / (end_ms - begin_ms) / 10, 1)


def report(usage: Path, threads: int, percent: float, spans: dict[str, tuple[int, int]]) -> None:
    """Print mean and p95 of the victim's queue times in a round, predicted and measured, these with their sampling error."""

    def say(name: str, waits_us: Any, begin_ms: float, end_ms: float) -> None:  # noqa: ANN401 - an array
        _, pool, clients = between(usage, begin_ms, end_ms)
        real = (pool.dequeued - pool.enqueued)[clients == _VICTIM]
        drawn_again = np.random.default_rng(1).choice(real, (200, len(real)))
        for figure, found in (("mean", np.mean), ("p95", partial(np.percentile, q=95))):
            one, other, spread = found(waits_us) / 1e3, found(real) / 1e3, found(drawn_again, axis=1).std() / 1e3
            _SAY(
                f"  {name} {figure}: predicted {one:.3f} ms, measured {other:.3f} ± {spread:.3f} ms, {one / other - 1:+.0%}"
            )

    rows, pool, clients = between(usage, spans["quiet"][0], spans["with"][1])
    queue = logged_queue(pool.enqueued, pool.released - pool.dequeued, pool.dequeued - pool.enqueued, threads)
    begin_us = spans["with"][0] * 1_000
    victim = (clients == _VICTIM) & (pool.dequeued >= begin_us)
    say("as logged", queue.waits()[victim], *spans["with"])
    gone = queue.waits(np.zeros(len(pool), np.int64), clients != _AGGRESSOR)
    say("removed", gone[victim], *spans["without"])
    tried = Candidate(
        name="tried", quotas=QuotaSet({QuotaEntity("ANONYMOUS", _AGGRESSOR): {"request_percentage": percent}})
    )
    connections = rows["connection"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)[pool.rows]
    later = victim & (pool.dequeued >= begin_us + LATER_S * 1e6)
    begin_ms = spans["throttled"][0] + 1e3 * LATER_S
    for mode in Mode:
        late = lateness(history_of(rows), [tried], mode, len(rows))[0][pool.rows]
        reacting = np.where(clients == _AGGRESSOR, connections, -1) if mode is Mode.CLOSED_LOOP else None
        waits = queue.waits(np.where(late == NEVER, 0, late * 1_000), late != NEVER, reacting)
        say(f"throttled, {mode.value}", waits[later], begin_ms, spans["throttled"][1])


def main() -> int:
    """Run the phases, unless the folder has them, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--aggressor", choices=CONNECTIONS, default="large_produces")
    parser.add_argument("--folder", type=Path, help="keep the requests of the run here, or report on a run kept here")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "rounds.json").exists():
            measured(folder, given.threads, given.aggressor, given.rounds)
        made = json.loads((folder / "rounds.json").read_text())
        for each in made["rounds"]:
            _SAY(
                f"{made['aggressor']}, {made['threads']} handler threads, {each['percent']:g} % is half of what it used"
            )
            report(folder / "usage", made["threads"], each["percent"], each["spans"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
