"""
Predictions of a simulated queue, beside measurements.

`python -m benchmarks benefit --threads 1 --aggressor large_produces`.

On a real broker a victim sends 50 requests a second and a steady client has requests of a few milliseconds, on the same
schedule in each phase: alone, with an aggressor, without it, and with it under a `request_percentage` of half of what
it used; then the last three again in another order, as a control: two measurements of the same load differ as well, and
no prediction can be nearer than that. From the log of the phases with the aggressor and of the first one, the victim's
queue times in all are predicted. The phases of each kind lie around one instant, so that a machine that becomes
steadily slower does so for all of them.

`--broker-cpus 1 --client-cpus 0` gives the broker a core of its own, of which the clients do not take time. `--flush-us
600` gives it a disk on which a flush takes 600 us; each Produce waits for three. Handler threads then mostly wait, and
hardly compete for CPUs, as on brokers that have enough of them. Without it, requests hold threads for longer beside an
aggressor, which is not simulated. `--authorize-us 1500` gives it an authorizer that takes so long, once for a request,
as one does that asks a server of policies: Metadata waits for no disk.
"""

import argparse
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import Event, Process
from multiprocessing.synchronize import Event as Stop
from pathlib import Path
from typing import Any, NamedTuple

import kafka as kafka_python
import numpy as np
import pyarrow as pa
from benchmarks.blame import broker
from benchmarks.output import say
from kafka.record import MemoryRecordsBuilder
from numpy.typing import NDArray
from tests.cluster.cluster import Cluster
from tests.cluster.flood import metadata, small_fetches
from tests.cluster.provision import newest_libs
from tests.cluster.quotas import Quotas

from quotascope.cli.main import app
from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.pipeline.blame import intervals
from quotascope.pipeline.blame.queueing import MOST_ERROR, LoggedQueue, scale_of
from quotascope.pipeline.history.charges import history_of
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.replay.closed_loop import NEVER
from quotascope.pipeline.replay.compiled import Floats, Ints
from quotascope.pipeline.replay.results import lateness
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.table import Table
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

QUIET, WITH, WITHOUT, THROTTLED = "quiet", "with", "without", "throttled"
PHASES = (QUIET, WITH, WITHOUT, THROTTLED, THROTTLED, WITHOUT, WITH)
"""Phases of a round; each begins 2 s after its clients."""
QUIET_S, WARM_S = 3.0, 40.0
_BLOCK_MS = 1_000
"""Requests of so long are drawn together for the sampling error, as waits of neighbors depend on each other."""
TOPICS, PARTITIONS = 60, 60
"""Topics beside it, which make Metadata long; its partitions."""
_NO_LIMIT = 10_000.0
"""
Percent.

With a request quota of any client, the local time of all requests ends with the quota's decision, before the response
is built
(Kafka 4.4: `Request.requestThreadTimeNanos`, called if `ClientRequestQuotaManager.quotasEnabled`); without one, after
it. So one is set in all phases.
"""
LATER_S = 8.0
"""Seconds after which the first burst under a quota is over, which begins with empty windows."""
_VICTIM, _STEADY, _AGGRESSOR = "victim", "steady", "aggressor"
CONNECTIONS = {"large_produces": (3, 0.01), "small_fetches": (4, 0.002), "metadata": (5, 0.003)}
"""Connections of each aggressor, and its mean pause between requests, s."""
STEADY = {1: 12, 2: 40}
"""Connections of the steady client, by handler threads: with fewer, requests hardly wait."""
_OWN = "own"
"""
A topic with a partition for each connection: a second Produce to a partition waits for its lock, in a handler thread.
"""


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
    "steady_writes": (0, 3, lambda partition: produce(partition, 100, 30, 1)),
    "large_produces": (0, 3, lambda partition: produce(partition, 20, 300_000, 1)),
    "small_fetches": (1, 4, lambda _: small_fetches()),
    "metadata": (3, 4, lambda _: metadata()),
}
"""API key, version, and body; `steady` takes 2 ms of a CPU, `steady_writes` three flushes."""


def request(name: str, kind: str, partition: int) -> bytes:
    """Return a request of a client id, as it is sent."""
    key, version, body = BODIES[kind]
    text = struct.pack(">hhih", key, version, 1, len(name)) + name.encode() + body(partition)
    return struct.pack(">i", len(text)) + text


def send(address: str, message: bytes, pauses: Sequence[float], *, on_time: bool, stop: Stop) -> None:
    """Send on one connection until stopped: on time, whatever the answers take, or with a pause after each answer."""
    host, _, port = address.rpartition(":")
    due, number = time.monotonic(), 0
    with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rb") as answers:
        while not stop.is_set():
            due = (due if on_time else time.monotonic()) + pauses[number % len(pauses)]
            time.sleep(max(0.0, due - time.monotonic()))
            connection.sendall(message)
            answers.read(*struct.unpack(">i", answers.read(4)))
            number += 1


def drawn(mean_s: float, seed: int) -> list[float]:
    """Pauses, the same each time."""
    source = random.Random(seed)  # noqa: S311 - a schedule
    return [source.expovariate(1 / mean_s) for _ in range(5_000)]


def client(calls: Sequence[tuple[Any, ...]], on_time: bool, stop: Stop) -> None:  # noqa: FBT001 - of a process
    """Run all connections of a client, as a process."""
    threads = [threading.Thread(target=send, args=call, kwargs={"on_time": on_time, "stop": stop}) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Setting of a measurement, and its CPUs."""

    threads: int
    aggressor: str
    seconds: float
    """Seconds of a phase."""
    broker_cpus: frozenset[int]
    client_cpus: frozenset[int]
    pause_s: float
    """Mean pause of a connection of the aggressor between requests."""
    flush_us: int
    """Duration of a flush to the disk; 0: the disk as it is."""
    authorize_us: int
    """Duration of an authorization; 0: there is no authorizer."""

    @property
    def waits(self) -> bool:
        """True if handler threads mostly wait."""
        return bool(self.flush_us or self.authorize_us)


def phase(address: str, aggressor: str | None, setting: Setting, seconds: float) -> tuple[int, int]:
    """Let the clients send, and return from when to when, epoch ms."""
    stop = Event()
    steady = "steady_writes" if setting.waits else "steady"
    kinds = [
        (_VICTIM, "victim", range(8), 0.16),
        (_STEADY, steady, range(8, 8 + STEADY[setting.threads]), 0.1),
    ]
    clients: list[tuple[list[tuple[Any, ...]], bool]] = [
        ([(address, request(name, kind, partition), drawn(pause_s, partition)) for partition in places], True)
        for name, kind, places, pause_s in kinds
    ]
    if aggressor is not None:
        places = range(PARTITIONS - CONNECTIONS[aggressor][0], PARTITIONS)
        clients.append(
            (
                [
                    (address, request(_AGGRESSOR, aggressor, partition), drawn(setting.pause_s, partition))
                    for partition in places
                ],
                False,
            )
        )
    processes = [Process(target=client, args=(*arguments, stop)) for arguments in clients]
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


def yield_to_clients(cluster: Cluster) -> None:
    """
    Return the victim's queue times of requests that were completed in a span.

    The second array has the number of the block that each is in.

    Clients that cannot run while a handler thread does send when it is idle: their requests do not wait, whatever the
    load.
    """
    for task in Path(f"/proc/{cluster.brokers[0].pid}/task").iterdir():
        os.setpriority(os.PRIO_PROCESS, int(task.name), os.getpriority(os.PRIO_PROCESS, 0) + 10)


def measured(folder: Path, setting: Setting, rounds: int) -> None:
    """
    Yield by phase the mean holding time of the steady client.

    Its requests are the same in all phases: the time differs as threads compete for CPUs.
    """
    round_results, usage = [], folder / "usage"
    folder.mkdir(parents=True, exist_ok=True)
    classes, settings = None, {}
    if setting.authorize_us:
        classes = folder.resolve() / "classes"
        source = Path(__file__).parent / "java" / "SlowAuthorizer.java"
        subprocess.run(["javac", "-proc:none", "-cp", f"{newest_libs()}/*", "-d", classes, source], check=True)
        settings = {"authorizer.class.name": "SlowAuthorizer", "slow.authorizer.us": str(setting.authorize_us)}
    # Processes run on the CPUs of the thread that starts them.
    os.sched_setaffinity(0, setting.broker_cpus)
    if setting.flush_us:
        slow = folder.resolve() / "slow_disk.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", slow, Path(__file__).with_name("slow_disk.c")], check=True)
        os.environ |= {"LD_PRELOAD": str(slow), "FLUSH_US": str(setting.flush_us)}
    with (
        broker(setting.threads, folder / "kafka", classes, settings) as cluster,
        closing(Quotas(cluster.connection())) as quotas,
    ):
        os.sched_setaffinity(0, setting.client_cpus)
        if not setting.waits:
            yield_to_clients(cluster)
        with closing(kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
            further = {f"more-{number}": 1 for number in range(TOPICS)}
            topics: dict[str, dict[str, Any]] = {
                name: {"num_partitions": count, "replication_factor": 1}
                for name, count in {_OWN: PARTITIONS, **further}.items()
            }
            if setting.flush_us:
                topics[_OWN]["configs"] = {"flush.messages": "1"}
            admin.create_topics(topics, wait_for_metadata=True)
        log = str(cluster.brokers[0].request_log)
        phase(cluster.admin, setting.aggressor, setting, WARM_S)
        for _ in range(rounds):
            spans: list[tuple[str, int, int]] = []
            percent = 0.0
            for name in PHASES:
                if name == THROTTLED and not percent:
                    app(["ingest", log, "--broker", "1", "--into", str(usage)], standalone_mode=False)
                    percent = used(usage, *spans[PHASES.index(WITH)][1:]) / 2
                quotas.clear()
                quotas.set(({"user": "ANONYMOUS", "client-id": _VICTIM}, {"request_percentage": _NO_LIMIT}))
                if name == THROTTLED:
                    quotas.set(({"user": "ANONYMOUS", "client-id": _AGGRESSOR}, {"request_percentage": percent}))
                aggressor = None if name in {QUIET, WITHOUT} else setting.aggressor
                seconds = QUIET_S if name == QUIET else setting.seconds
                spans.append((name, *phase(cluster.admin, aggressor, setting, seconds)))
                time.sleep(1)
            round_results.append({"percent": percent, "spans": spans})
        app(["ingest", log, "--broker", "1", "--into", str(usage)], standalone_mode=False)
    shutil.rmtree(folder / "kafka")
    (folder / "rounds.json").write_text(
        json.dumps(
            {
                "threads": setting.threads,
                "aggressor": setting.aggressor,
                "flush_us": setting.flush_us,
                "authorize_us": setting.authorize_us,
                "rounds": round_results,
            }
        )
    )


Span = tuple[float, float]
"""Begin and end, epoch ms."""


def within(times: Ints, spans: Iterable[Span]) -> NDArray[np.bool_]:
    """Return which times, in ms, are in one of the spans."""
    inside = np.zeros(len(times), np.bool_)
    for begin, end in spans:
        inside |= (times >= begin) & (times < end)
    return inside


def between(usage: Path, *spans: Span) -> tuple[pa.Table, intervals.Intervals, NDArray[np.str_]]:
    """
    Requests that were completed then.

    Their rows, those of the broker's handler threads, and the client of each of these.
    """
    table = Table.open(f"{usage}/requests", schema=REQUESTS).read().sort_by("position")
    rows = table.filter(pa.array(within(table["completed"].to_numpy(), spans)))
    rows = rows.set_column(rows.column_names.index("position"), "position", pa.array(np.arange(len(rows))))
    pool = intervals.intervals(rows).of_pool("1")
    return rows, pool, np.array([group.client_id for group in pool.names])[pool.groups]


def used(usage: Path, begin_ms: int, end_ms: int) -> float:
    """Return the percent of a handler thread that the aggressor used."""
    _, pool, clients = between(usage, (begin_ms, end_ms))
    held_ns = (pool.released - pool.dequeued)[clients == _AGGRESSOR].sum()
    return round(float(held_ns) / (end_ms - begin_ms) / 10, 1)


class Figure(NamedTuple):
    """Figure of the victim's queue times."""

    name: str
    of: Callable[[Floats | Ints], Any]


FIGURES = (Figure("mean", np.mean), Figure("p95", partial(np.percentile, q=95)))


def waits_between(usage: Path, begin_ms: float, end_ms: float) -> tuple[Ints, Ints]:
    """Return the victim's queue times of requests that were completed then, and the number of each one's block."""
    _, pool, clients = between(usage, (begin_ms, end_ms))
    victim = clients == _VICTIM
    return (pool.dequeued - pool.enqueued)[victim], pool.dequeued[victim] // 1_000 // _BLOCK_MS


def spread(figure: Figure, waits: Ints, blocks: Ints) -> float:
    """Return the standard error of a figure, by drawing whole blocks again."""
    source = np.random.default_rng(1)
    parts = [waits[blocks == block] for block in np.unique(blocks)]
    drawn_again = (source.integers(0, len(parts), len(parts)) for _ in range(300))
    return float(np.std([figure.of(np.concatenate([parts[n] for n in numbers])) for numbers in drawn_again]))


def held(usage: Path, spans: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    """
    Yield by phase the mean holding time of the steady client, whose requests are the same in all.

    It differs as threads compete for CPUs.
    """
    for name, begin_ms, end_ms in spans:
        _, pool, clients = between(usage, (begin_ms, end_ms))
        yield f"{name} {(pool.released - pool.dequeued)[clients == _STEADY].mean() / 1e3:.2f} ms"


class Compared(NamedTuple):
    """
    The victim's queue times as predicted, and as measured in the first and the last phase of their kind.

    Waits in us, and blocks.
    """

    name: str
    predicted: Floats | Ints
    first: tuple[Ints, Ints]
    last: tuple[Ints, Ints]

    def say(self) -> None:
        """Print the error against both measurements together, and by how much the last one differs from the first."""
        united, blocks = joined([self.first, self.last])
        for figure in FIGURES:
            predicted, real = figure.of(self.predicted) / 1e3, figure.of(united) / 1e3
            first_ms, last_ms = (figure.of(waits) / 1e3 for waits, _ in (self.first, self.last))
            say(
                f"  {self.name} {figure.name}: predicted {predicted:.3f} ms, measured {real:.3f} ± {spread(figure, united, blocks) / 1e3:.3f} ms, "
                f"error {predicted / real - 1:+.0%}; measured twice {first_ms:.3f} and {last_ms:.3f} ms, control {last_ms / first_ms - 1:+.0%}"
            )


def all_rounds(rounds: Sequence[Compared]) -> Compared:
    """Return the same comparison of several rounds as one."""
    names, predicted, firsts, lasts = zip(*rounds, strict=True)
    return Compared(names[0], np.concatenate(predicted), joined(firsts), joined(lasts))


def joined(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Waits and blocks of several phases as of one."""
    waits, blocks = zip(*parts, strict=True)
    return np.concatenate(waits), np.concatenate(blocks)


def compared(usage: Path, threads: int, percent: float, spans: Sequence[tuple[str, int, int]]) -> Iterator[Compared]:
    """Predict the victim's queue times in the phases of a round from the log of those with the aggressor."""

    def beside(name: str, phase: str, waits_us: Floats | Ints, later_ms: float = 0.0) -> Compared:
        first_waits, last_waits = (
            waits_between(usage, begin_ms + later_ms, end_ms) for kind, begin_ms, end_ms in spans if kind == phase
        )
        return Compared(name, waits_us, first_waits, last_waits)

    logged = [(begin, end) for kind, begin, end in spans if kind == WITH]
    rows, pool, clients = between(usage, *((begin, end) for kind, begin, end in spans if kind in {QUIET, WITH}))
    queue = LoggedQueue(pool.enqueued, pool.released - pool.dequeued, pool.dequeued - pool.enqueued, threads)
    victim = (clients == _VICTIM) & within(pool.dequeued // 1_000, logged)
    connections = rows["connection"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)[pool.rows]
    for name, simulated in (("open_loop", queue.waits()), ("closed_loop", queue.waits(connections=connections))):
        error = simulated.mean() / queue.logged.mean() - 1
        say(f"  all requests, {name}: error {error:+.0%}{', which whatif refuses' if abs(error) > MOST_ERROR else ''}")
    say(f"  {_STEADY} client's requests hold a thread for {', '.join(held(usage, spans))}")
    yield beside("as logged", WITH, simulated[victim])
    of_others = clients != _AGGRESSOR
    without = queue.waits(present=of_others)
    yield beside("removed", WITHOUT, without[victim])
    tried = Candidate(
        name="tried", quotas=QuotaSet({QuotaEntity("ANONYMOUS", _AGGRESSOR): {"request_percentage": percent}})
    )
    later = victim & within(pool.dequeued // 1_000, [(begin + LATER_S * 1e3, end) for begin, end in logged])
    for mode in Mode:
        following = connections if mode is Mode.CLOSED_LOOP else None
        late = lateness(history_of(rows), [tried], mode, len(rows))[0][pool.rows]
        waits = queue.waits(np.where(late == NEVER, 0, late * 1_000), late != NEVER, following)
        if following is None:
            scale = scale_of(queue.waits()[of_others], without[of_others], queue.logged[of_others])
            waits = np.maximum(0.0, without + scale * (waits - without))
        yield beside(f"throttled, {mode.value}", THROTTLED, waits[later], 1e3 * LATER_S)


def cpus(text: str) -> frozenset[int]:
    """Numbers of CPUs, separated by commas."""
    return frozenset(int(number) for number in text.split(","))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--threads", type=int, choices=STEADY, default=1, help="num.io.threads")
    parser.add_argument("--aggressor", choices=CONNECTIONS, default="large_produces")
    parser.add_argument("--folder", type=Path, help="keep the requests of the run here, or report on a run kept here")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=24.0, help="of each phase")
    everywhere = frozenset(os.sched_getaffinity(0))
    parser.add_argument("--broker-cpus", type=cpus, default=everywhere, help="CPUs that the broker has, as 1 or 2,3")
    parser.add_argument("--client-cpus", type=cpus, default=everywhere, help="CPUs that all clients have")
    parser.add_argument(
        "--flush-us", type=int, default=0, help="what a flush to the disk takes, us; 0: the disk as it is"
    )
    parser.add_argument(
        "--authorize-us", type=int, default=0, help="what the authorizer takes for a request, us; 0: there is none"
    )
    parser.add_argument("--pause-ms", type=float, help="mean pause of the aggressor between requests of a connection")


def main(options: argparse.Namespace) -> int:
    """Run the phases, unless the folder has them, and report."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if not (folder / "rounds.json").exists():
            setting = Setting(
                threads=options.threads,
                aggressor=options.aggressor,
                seconds=options.seconds,
                broker_cpus=options.broker_cpus,
                client_cpus=options.client_cpus,
                pause_s=CONNECTIONS[options.aggressor][1] if options.pause_ms is None else options.pause_ms / 1e3,
                flush_us=options.flush_us,
                authorize_us=options.authorize_us,
            )
            measured(folder, setting, options.rounds)
        results = json.loads((folder / "rounds.json").read_text())
        rounds: list[list[Compared]] = []
        for round_result in results["rounds"]:
            say(
                f"{results['aggressor']}, {results['threads']} handler threads, flushes of {results['flush_us']} us, "
                f"an authorizer of {results.get('authorize_us', 0)} us, {round_result['percent']:g} % is half of what it used"
            )
            rounds.append(
                list(compared(folder / "usage", results["threads"], round_result["percent"], round_result["spans"]))
            )
            for comparison in rounds[-1]:
                comparison.say()
        if len(rounds) > 1:
            say(f"{len(rounds)} rounds together")
            for comparisons in zip(*rounds, strict=True):
                all_rounds(comparisons).say()
    return 0
