"""Makes the account of an application from its event log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..event_log import EventLog, EventLogError
from ..job import Job, read_summary
from .account import Account
from .errors import ReportError
from .story import Story

Progress = Callable[[int, int], None]
"""Is told how many bytes of how many were read."""


def read_account(
    path: Path, summary: Path | None = None, progress: Progress | None = None
) -> Account:
    """
    Read an event log as far as it goes now.

    Args:
        path: a file, or a folder, see `EventLog`.
        summary: what the listener left behind (`write_summary`), for the throttle times of attempts that succeeded.
        progress: is called now and then.

    Raises:
        EventLogError: the log cannot be read.
        UnreadableSummary: the other file cannot be used.
        ReportError: a file cannot be opened.

    """
    try:
        return _read(path, summary, progress)
    except OSError as error:
        where = error.filename or path
        raise ReportError(f"{where}: {error.strerror or error}") from error


def _read(path: Path, summary: Path | None, progress: Progress | None) -> Account:
    counted = None if summary is None else read_summary(summary)
    story = Story()
    with EventLog(path) as log:
        job = Job("", watcher=story)
        size = log.size()
        log.feed(job, None if progress is None else lambda read: progress(read, size))
        snapshot = job.snapshot()
    if not snapshot.events:
        raise EventLogError(f"{log.path} holds no event yet")
    return Account(
        snapshot=snapshot,
        app=story.app,
        app_id=story.app_id,
        began=story.began,
        ended=story.ended,
        finished=story.finished,
        compacted=log.compacted,
        with_summary=counted is not None,
        throttles=snapshot.throttles if counted is None else counted.throttles,
        unknown_attempts=snapshot.unknown_attempts
        if counted is None
        else counted.unknown_attempts,
        stages=story.stages(),
        attempts=story.attempts(),
        batches=story.batches(),
        left_out=story.left_out,
    )
