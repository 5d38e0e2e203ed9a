"""
Every metric family of quotascope, declared once.

The exporter, the generated pages and all readers of the exposition take names, types, labels and units from here, so
that they cannot drift apart. Units are base units (seconds, bytes, ratio); request time is counted in threads, 1 being
one thread busy all the time (Kafka's 100 percent).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from . import callback, clients, limits, neighbors, node, own, rules, shadow, spark, team_usage, usage
from .callback import *
from .clients import *
from .family import *
from .limits import *
from .neighbors import *
from .node import *
from .own import *
from .rules import *
from .shadow import *
from .spark import *
from .team_usage import *
from .usage import *


def families() -> Iterator[Family]:
    """Yield the families of the exporter, in its order."""
    for module in (usage, limits, team_usage, callback, shadow, rules, node, neighbors, own):
        yield from _declared(module)


def client_families() -> Iterator[Family]:
    """Yield the families of a program's Kafka clients."""
    yield from _declared(clients)


def job_families() -> Iterator[Family]:
    """Yield the families of Spark jobs."""
    yield from _declared(spark)


def _declared(module: ModuleType) -> Iterator[Family]:
    """Yield the families of a module, those by quota type included, in the order in which it declares them."""
    for value in vars(module).values():
        if isinstance(value, Family):
            yield value
        elif isinstance(value, dict):
            yield from (family for family in value.values() if isinstance(family, Family))
