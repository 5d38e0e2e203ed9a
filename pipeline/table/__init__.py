"""
Committed tables: directories of Parquet files of which a reader sees only what a commit lists.

`Table` appends, follows another table, reads, compacts and drops old days; `TableLayout` says how rows are spread over files.
"""

from .layout import File, TableLayout
from .table import Progress, Run, Table, retried, run_here

__all__ = ["File", "Progress", "Run", "Table", "TableLayout", "retried", "run_here"]
