"""
What if: usage history replayed through Kafka's own algorithms under quotas that nobody has set yet.

`replay` answers per entity, candidate and quota type (`RESULTS`), `predict` per request of one candidate (`PREDICTIONS`). What the two
modes take for granted is said in `mode.Mode`.
"""

from .mode import Mode, Settings
from .predict import predict
from .replay import Progress, replay
from .results import PREDICTIONS, RESULTS

__all__ = [
    "PREDICTIONS",
    "RESULTS",
    "Mode",
    "Progress",
    "Settings",
    "predict",
    "replay",
]
