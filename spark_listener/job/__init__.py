"""The state of one application: failures and retries by cause, streaming queries, and throttle times by client."""

from .attempts import StageReader
from .catching_up import CatchUp
from .job import EventSink, Job, Watcher
from .snapshot import (
    MEASURED_NONE,
    NOT_MEASURED,
    ClientKind,
    JobSnapshot,
    QuerySnapshot,
    QueryTotals,
    Summary,
    read_summary,
    write_summary,
)
from .throttles import ThrottleReader

__all__ = [
    "MEASURED_NONE",
    "NOT_MEASURED",
    "CatchUp",
    "ClientKind",
    "EventSink",
    "Job",
    "JobSnapshot",
    "QuerySnapshot",
    "QueryTotals",
    "StageReader",
    "Summary",
    "ThrottleReader",
    "Watcher",
    "read_summary",
    "write_summary",
]
