"""
Committed tables: directories of Parquet files of which a reader sees only what a commit lists.

`Table` appends, reads, compacts and drops old days; `Layout` says how rows are spread over files.
"""

from .file import File
from .following import Follower, Make
from .layout import Layout
from .retrying import retried
from .run import Run, run_here
from .table import NO_NOTES, Table, Turn

__all__ = [
    "NO_NOTES",
    "File",
    "Follower",
    "Layout",
    "Make",
    "Run",
    "Table",
    "Turn",
    "retried",
    "run_here",
]
