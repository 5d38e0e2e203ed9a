"""
Committed tables: directories of Parquet files of which a reader sees only what a commit lists.

`Table` appends, reads, compacts and drops old days; `TableLayout` says how rows are spread over files.
"""

from .following import Follower, Make
from .layout import File, TableLayout
from .table import NO_NOTES, Progress, Run, Table, retried, run_here

__all__ = [
    "NO_NOTES",
    "File",
    "Follower",
    "Make",
    "Progress",
    "Run",
    "Table",
    "TableLayout",
    "retried",
    "run_here",
]
