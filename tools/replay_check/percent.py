"""The unit of the request quota."""

from typing import Final

PERCENT_PER_MS: Final = 0.1
"""One ms of thread time as the quota counts it: a thread that is busy for a second is 100 percent."""
