"""Bytes that an entity with full windows holds."""

import gc
import tracemalloc
from collections.abc import Callable

from benchmarks.subjects import NEVER, fill, manager, sensor

from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.principal import Principal

ENTITIES = 2_000


def _sensors(count: int) -> object:
    registry = Registry()
    for number in range(count):
        sensor(registry, f"s{number}", bucket=True, bound=NEVER)
    return registry


def _managed(count: int) -> object:
    quotas = manager(Registry(), NEVER)
    for number in range(count):
        fill(quotas, Principal(f"user-{number}"))
    return quotas


MEMORY: dict[str, Callable[[int], object]] = {
    "memory, rate + bucket": _sensors,
    "memory, quota manager": _managed,
}


def per_entity(make: Callable[[int], object]) -> float:
    """Return bytes per entity, as Python's allocator counts them."""
    make(10)
    gc.collect()
    tracemalloc.start()
    bytes_before = tracemalloc.get_traced_memory()[0]
    entities = make(ENTITIES)
    gc.collect()
    bytes_after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del entities
    return (bytes_after - bytes_before) / ENTITIES
