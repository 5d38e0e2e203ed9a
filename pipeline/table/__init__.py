"""
Committed tables: directories of Parquet files of which a reader sees only what a commit lists.

`Table` appends, reads, compacts and drops old days; `follow` makes tables of another one's new rows; `TableLayout` says
how rows are spread over files.
"""

from .storage import File, TableLayout
from .table import Cleaned, Follower, Map, Progress, Table, follow, following, retried, staging
from .writers import writing

__all__ = [
    "Cleaned",
    "File",
    "Follower",
    "Map",
    "Progress",
    "Table",
    "TableLayout",
    "follow",
    "following",
    "retried",
    "staging",
    "writing",
]
