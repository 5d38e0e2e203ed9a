"""
Committed tables: directories of Parquet files of which a reader sees only what a commit lists.

`Table` appends, reads, compacts and drops old days; `follow` makes tables of another one's new rows; `TableLayout` says how rows are spread over files.
"""

from .storage import File, TableLayout
from .table import Follower, Progress, Run, Table, follow, following, retried, run_here, staging

__all__ = [
    "File",
    "Follower",
    "Progress",
    "Run",
    "Table",
    "TableLayout",
    "follow",
    "following",
    "retried",
    "run_here",
    "staging",
]
