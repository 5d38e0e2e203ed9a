"""
What a simulated queue predicts, and what is measured: `python -m benchmarks.benefit --threads 1 --aggressor large_produces`.

On a real broker a victim sends 50 requests a second and a steady client has requests of a few milliseconds, on the same schedule in each phase:
alone, with an aggressor, without it, and with it under a `request_percentage`. From the log of the first two phases, the victim's queue times in
the other two are predicted.
"""

import argparse
import random
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from multiprocessing import Event, Process
from multiprocessing.synchronize import Event as Stop
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.blame import broker
from kafka.record import MemoryRecordsBuilder
from rich.console import Console
from tests.cluster.flood import KINDS, LOAD
from tests.cluster.quotas import Quotas

from quotascope.cli.main import app
from quotascope.metrics import QuotaEntity
from quotascope.pipeline.blame import intervals
from quotascope.pipeline.blame.queueing import logged_queue
from quotascope.pipeline.history.charges import history_of
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.replay.arrivals import lateness
from quotascope.pipeline.replay.closed_loop import NEVER
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.table import Table
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

_SAY = Console(highlight=False, soft_wrap=True).print
SECONDS = {"warm": 5.0, "quiet": 7.0, "with": 28.0, "without": 18.0, "throttled": 32.0}
"""Of each phase, after 2 s for the clients to begin."""
LATER_S = 8.0
"""After so long under a quota its first burst is over, which begins with empty windows."""
_VICTIM, _STEADY, _AGGRESSOR = "victim", "steady", "aggressor"
CONNECTIONS = {"large_produces": (3, 0.01), "small_fetches": (4, 0.002), "metadata": (4, 0.004)}
"""Of each aggressor, and its mean pause between requests, s."""


def steady(records: int = 14_000) -> bytes:
    """Produce, version 3, of so many compressed records: 2 ms of a handler thread."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=1, batch_size=1 << 22)
    for _ in range(records):
        builder.append(timestamp=None, key=None, value=bytes(30))
    builder.close()
    batch = bytes(builder.buffer())
    return (
        struct.pack(">hhiih", -1, 1, 5_000, 1, len(LOAD))
        + LOAD.encode()
        + struct.pack(">iii", 1, 0, len(batch))
        + batch
    )


BODIES: dict[str, tuple[int, int, Callable[[], bytes]]] = {**KINDS, "steady": (0, 3, steady)}


def send(address: str, name: str, kind: str, pauses: Sequence[float], *, on_time: bool, stop: Stop) -> None:
    """Send on one connection until stopped: on time, whatever the answers take, or with a pause after each answer."""
    key, version, body = BODIES[kind]
    text = struct.pack(">hhih", key, version, 1, len(name)) + name.encode() + body()
    host, _, port = address.rpartition(":")
    at, number = time.monotonic(), 0
    with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rb") as answers:
        while not stop.is_set():
            at = (at if on_time else time.monotonic()) + pauses[number % len(pauses)]
            time.sleep(max(0.0, at - time.monotonic()))
            connection.sendall(struct.pack(">i", len(text)) + text)
            answers.read(*struct.unpack(">i", answers.read(4)))
            number += 1


def drawn(mean_s: float, seed: int) -> list[float]:
    """Pauses, the same each time."""
    source = random.Random(seed)  # noqa: S311 - a schedule
    return [source.expovariate(1 / mean_s) for _ in range(5_000)]


def client(calls: Sequence[tuple[Any, ...]], on_time: bool, stop: Stop) -> None:  # noqa: FBT001 - of a process
    """All connections of a client, as a process."""
    threads = [threading.Thread(target=send, args=call, kwargs={"on_time": on_time, "stop": stop}) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def phase(address: str, aggressor: str | None, threads: int, seconds: float) -> tuple[int, int]:
    """Let the clients send, and return from when to when, epoch ms."""
    stop = Event()
    clients: list[tuple[list[tuple[Any, ...]], bool]] = [
        ([(address, _VICTIM, "small_produces", [0.02])], True),
        ([(address, _STEADY, "steady", drawn(0.025, seed)) for seed in range(4 * threads - 1)], True),
    ]  # fmt: skip
    if aggressor is not None:
        connections, pause_s = CONNECTIONS[aggressor]
        clients.append(([(address, _AGGRESSOR, aggressor, drawn(pause_s, seed)) for seed in range(connections)], False))
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


def measured(folder: Path, threads: int, aggressor: str, percent: float) -> tuple[Path, dict[str, tuple[int, int]]]:
    """The request log of all phases, and when they were."""
    spans = {}
    with broker(threads, folder) as cluster, closing(Quotas(cluster.connection())) as quotas:
        for name, seconds in SECONDS.items():
            if name == "throttled":
                quotas.set(({"user": "ANONYMOUS", "client-id": _AGGRESSOR}, {"request_percentage": percent}))
            alone = name in {"quiet", "without"}
            spans[name] = phase(cluster.admin, None if alone else aggressor, threads, seconds)
            time.sleep(1)
        return cluster.brokers[0].request_log, spans


def report(usage: Path, spans: dict[str, tuple[int, int]], threads: int, percent: float) -> None:
    """Print mean and p95 of the victim's queue times, predicted and measured."""
    table = Table.open(f"{usage}/requests", None, REQUESTS).read().sort_by("position")

    def between(begin_ms: float, end_ms: float) -> tuple[pa.Table, intervals.Intervals, np.ndarray[Any, Any]]:
        times = table["completed"].to_numpy()
        rows = table.filter(pa.array((times >= begin_ms) & (times < end_ms)))
        rows = rows.set_column(rows.column_names.index("position"), "position", pa.array(np.arange(len(rows))))
        pool = intervals.intervals(rows).of_pool("1")
        return rows, pool, np.array([each.client_id for each in pool.names])[pool.groups]

    def say(name: str, waits_us: Any, begin_ms: float, end_ms: float) -> None:  # noqa: ANN401 - an array
        _, pool, clients = between(begin_ms, end_ms)
        real = (pool.dequeued - pool.enqueued)[clients == _VICTIM]
        for figure, found in (("mean", np.mean), ("p95", lambda each: np.percentile(each, 95))):
            one, other = found(waits_us) / 1e3, found(real) / 1e3
            _SAY(f"  {name} {figure}: predicted {one:.3f} ms, measured {other:.3f} ms, {one / other - 1:+.0%}")

    first, last = spans["quiet"][0], spans["with"][1]
    rows, pool, clients = between(first, last)
    queue = logged_queue(pool.enqueued, pool.released - pool.dequeued, pool.dequeued - pool.enqueued, threads)
    begin_us = spans["with"][0] * 1_000
    victim = (clients == _VICTIM) & (pool.dequeued >= begin_us)
    say("as logged", queue.simulated[victim], *spans["with"])
    gone = queue.predicted(np.zeros(len(pool), np.int64), clients != _AGGRESSOR)
    say("removed", gone[victim], *spans["without"])
    tried = Candidate(
        name="tried", quotas=QuotaSet({QuotaEntity("ANONYMOUS", _AGGRESSOR): {"request_percentage": percent}})
    )
    later = victim & (pool.dequeued >= begin_us + LATER_S * 1e6)
    begin_ms = spans["throttled"][0] + 1e3 * LATER_S
    for mode in Mode:
        late = lateness(history_of(rows), [tried], mode, len(rows))[0][pool.rows]
        waits = queue.predicted(np.where(late == NEVER, 0, late * 1_000), late != NEVER)
        say(f"throttled, {mode.value}", waits[later], begin_ms, begin_ms + 1e3 * (SECONDS["with"] - LATER_S))


def main() -> int:
    """Run the phases once, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--aggressor", choices=CONNECTIONS, default="large_produces")
    parser.add_argument("--percent", type=float, default=25)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log, spans = measured(Path(folder) / "kafka", given.threads, given.aggressor, given.percent)
        usage = Path(folder) / "usage"
        app(["ingest", str(log), "--broker", "1", "--into", str(usage)], standalone_mode=False)
        _SAY(f"{given.aggressor}, {given.threads} handler threads, {given.percent:g} %")
        report(usage, spans, given.threads, given.percent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
