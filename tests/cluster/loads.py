"""Real producers whose rates follow functions of time, many at once, each under a client id of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

STEP_S: Final = 0.5
"""Seconds between two requests of a client."""
_TOPIC: Final = "loads"
_KEPT: Final = {"retention.bytes": "16777216", "segment.bytes": "16777216"}
"""The records have been measured when they arrive, and nobody reads them."""
_SILENT: Final = {"log_level": 0}

Sizes = Callable[[float], int]
"""Function of the seconds since the beginning: bytes of the request that is sent then; 0 for none."""


@contextmanager
def driven(address: str, clients: Mapping[str, Sizes]) -> Iterator[None]:
    """Produce by these client ids within the block: each half second a request of as many bytes as each says."""
    admin = AdminClient({"bootstrap.servers": address, **_SILENT})
    admin.create_topics([NewTopic(_TOPIC, 1, 1, config=_KEPT)])[_TOPIC].result(30)
    producers = {
        name: Producer({"bootstrap.servers": address, "client.id": name, "linger.ms": 0, "acks": 1, **_SILENT})
        for name in clients
    }
    stop = threading.Event()

    def drive() -> None:
        begin = time.monotonic()
        for step in count():
            for place, (name, sizes) in enumerate(clients.items()):
                at = step * STEP_S
                # in turn, so that they do not all arrive at once
                if stop.wait(max(0.0, begin + at + STEP_S * place / len(clients) - time.monotonic())):
                    return
                if size := sizes(at):
                    producers[name].produce(_TOPIC, bytes(size))
                producers[name].poll(0)

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        yield
    finally:
        stop.set()
        driver.join()
        for producer in producers.values():
            producer.flush(20)
