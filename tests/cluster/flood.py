"""
A client that loads a broker's handler threads, as a process of its own.

`python -m tests.cluster.flood small_fetches NAME HOST:PORT SECONDS`.

Each connection has one request at a time. Without a rate the next follows at once; with one, requests are sent on time,
on a connection that is free.
"""

import argparse
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable

from kafka.record import MemoryRecordsBuilder

LOAD, WIDE = "load", "wide"
PARTITIONS = 50
"""Partitions of `WIDE`, whose names and partitions make Metadata and Fetch long."""
_PRODUCE, _FETCH, _METADATA = 0, 1, 3
_GZIP = 1
_LARGE = 6_000_000
"""Bytes that a broker decompresses to check a batch."""


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _produce(size: int, codec: int, partition: int) -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=2 * size + 1_000)
    for _ in range(20):
        builder.append(timestamp=None, key=None, value=bytes(size // 20))
    builder.close()
    records = bytes(builder.buffer())
    return (
        struct.pack(">hhii", -1, 1, 5_000, 1) + _text(LOAD) + struct.pack(">iii", 1, partition, len(records)) + records
    )


def large_produces() -> bytes:
    """Produce, version 3, of few bytes that become many."""
    return _produce(_LARGE, _GZIP, 0)


def small_produces() -> bytes:
    """
    Return a Produce, version 3, of 200 bytes to another partition.

    A request to the same partition would wait for its lock in a handler thread.
    """
    return _produce(200, 0, 1)


def small_fetches() -> bytes:
    """Fetch, version 4, of a few bytes of each partition, answered at once."""
    partitions = b"".join(struct.pack(">iqi", number, 0, 50) for number in range(PARTITIONS))
    return (
        struct.pack(">iiiibi", -1, 0, 0, 50 * PARTITIONS, 0, 1)
        + _text(WIDE)
        + struct.pack(">i", PARTITIONS)
        + partitions
    )


def metadata() -> bytes:
    """Metadata, version 4, of all topics."""
    return struct.pack(">ib", -1, 0)


KINDS: dict[str, tuple[int, int, Callable[[], bytes]]] = {
    "large_produces": (_PRODUCE, 3, large_produces),
    "small_produces": (_PRODUCE, 3, small_produces),
    "small_fetches": (_FETCH, 4, small_fetches),
    "metadata": (_METADATA, 4, metadata),
}
"""API key, version, and body."""


def flood(kind: str, name: str, address: str, seconds: float, connections: int, rate: float) -> dict[str, float]:
    """Send until the time is over; return how many were sent, and by how much the latest was late, s."""
    key, version, body = KINDS[kind]
    text = struct.pack(">hhi", key, version, 1) + _text(name) + body()
    request = struct.pack(">i", len(text)) + text
    host, _, port = address.rpartition(":")
    begin = time.monotonic()
    turn, sent, late = iter(range(sys.maxsize)), [0], [0.0]

    def send() -> None:
        with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rb") as answers:
            while True:
                send_at = begin + next(turn) / rate if rate else time.monotonic()
                if send_at >= begin + seconds:
                    return
                time.sleep(max(0.0, send_at - time.monotonic()))
                late[0] = max(late[0], time.monotonic() - send_at)
                connection.sendall(request)
                (length,) = struct.unpack(">i", answers.read(4))
                answers.read(length)
                sent[0] += 1

    threads = [threading.Thread(target=send) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"sent": sent[0], "late_s": late[0]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("name")
    parser.add_argument("address")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.0)
    arguments = parser.parse_args()
    print(json.dumps(flood(**vars(arguments))))  # noqa: T201 - its answer
