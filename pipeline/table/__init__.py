"""
Committed tables: directories of Parquet files of which a reader sees only what a commit lists.

`Table` appends, reads, compacts and drops old days; `follow` makes tables of another one's new rows; `TableLayout` says how rows are spread over files.
"""

from .layout import File, TableLayout
from .table import Follower, Table, follow, following, retried, staging

__all__ = ["File", "Follower", "Table", "TableLayout", "follow", "following", "retried", "staging"]
