"""
Usage history replayed through Kafka's quota algorithms, under rules that are not set.

The kernels (`algorithms`, `open_loop`, `closed_loop`) equal the engine (`quotascope.metrics`) record by record and to
the last bit; the tests drive both. `results.replay` is the walk through them.
"""

from .plan import Mode, ReplaySettings
from .results import RESULTS, replay

__all__ = ["RESULTS", "Mode", "ReplaySettings", "replay"]
