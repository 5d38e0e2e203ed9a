"""
The events of a driver through a queue in its JVM.

A listener that consists of method handles puts events into a bounded queue there; Python takes them out in batches, when it has time. No jar,
no callback into Python, no port: a driver that is busy, or dies, costs the JVM nothing.
"""

from .source import PullSource

__all__ = ["PullSource"]
