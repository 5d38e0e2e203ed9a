"""
Usage history: what every request charged to quotas, kept so that a replay reads each client's requests in order.

`history_of` turns parsed requests into charges (`HISTORY`), `rollup` adds them up by second, minute and hour (`ROLLUP`), and `History`
keeps both on disk.
"""

from .charges import history_of
from .rollup import WIDTHS, rollup
from .schema import HISTORY, ORDER, ROLLUP
from .store import History, totals

__all__ = [
    "HISTORY",
    "ORDER",
    "ROLLUP",
    "WIDTHS",
    "History",
    "history_of",
    "rollup",
    "totals",
]
