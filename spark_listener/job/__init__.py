"""The books of one application: failures and retries by cause, streaming queries, and who waited for Kafka."""

from .job import Job, ThrottleReader
from .snapshot import JobSnapshot, QuerySnapshot, QueryTotals

__all__ = ["Job", "JobSnapshot", "QuerySnapshot", "QueryTotals", "ThrottleReader"]
