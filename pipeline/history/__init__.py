"""
Usage history: what every request charged to quotas, kept so that a replay reads all requests of a user together.

`history_of` turns parsed requests into charges (`HISTORY`), `rollup` adds them up by second (`ROLLUP`), and `History`
keeps both on disk.
"""

from .charges import history_of, rollup
from .schema import HISTORY, ROLLUP
from .store import History

__all__ = ["HISTORY", "ROLLUP", "History", "history_of", "rollup"]
