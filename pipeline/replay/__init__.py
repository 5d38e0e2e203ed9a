"""
Usage history replayed through Kafka's quota algorithms, under rules that are not set.

The kernels (`rate`, `mutations`, `open_loop`, `closed_loop`) equal the engine (`quotascope.metrics`) record by record and to the last bit; the
tests drive both. `local.replay` is the walk through them.
"""

from .local import replay
from .plan import Mode, ReplaySettings
from .results import RESULTS

__all__ = ["RESULTS", "Mode", "ReplaySettings", "replay"]
