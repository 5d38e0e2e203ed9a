"""
The cost of Kafka's quotas for a Spark job: how long it is throttled, on which client-id, and which retries that caused.

`attach(spark)` in a job's driver collects Spark's own events and the throttle times of the Kafka clients in its tasks,
and reports them to Prometheus or over OTLP. Tasks import this package, too: what the driver needs is imported on first
use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .attaching import attach
    from .enabling import enable
    from .listener import Listener, Problem

__all__ = ["Listener", "Problem", "attach", "enable"]
_HOMES = {
    "Listener": "listener",
    "Problem": "listener",
    "attach": "attaching",
    "enable": "enabling",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as little as can be in a task

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
