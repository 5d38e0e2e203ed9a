"""The books of one application: failures and retries by cause, streaming queries, and who waited for Kafka."""

from ..errors import UnreadableSummary
from .books import Books
from .job import Job, Watcher
from .snapshot import JobSnapshot, QuerySnapshot, QueryTotals
from .summary import Summary, read_summary, write_summary
from .throttles import ThrottleReader
from .untold import StageReader

__all__ = [
    "Books",
    "Job",
    "JobSnapshot",
    "QuerySnapshot",
    "QueryTotals",
    "StageReader",
    "Summary",
    "ThrottleReader",
    "UnreadableSummary",
    "Watcher",
    "read_summary",
    "write_summary",
]
