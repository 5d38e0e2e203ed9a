"""What streaming queries tell of themselves, the same in classic mode and under Spark Connect."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable
from typing import Any

from ..errors import SourceUnusable, brief
from ..foreign import Spark
from ..job import EventSink

_PATIENCE_SECONDS = 5.0
_EVENT = "org.apache.spark.sql.streaming.StreamingQueryListener$"


class StreamingSource:
    """
    A Python `StreamingQueryListener`: starts, progress and ends of the session's queries, and nothing of tasks.

    Raises:
        SourceUnusable: this session has no streaming queries, or does not let them be listened to.

    """

    name = "streaming"

    def __init__(self, session: Spark, job: EventSink) -> None:
        self._session = session
        self._job = job
        try:
            self._listener = _listener(self._deliver)
            with warnings.catch_warnings():  # Connect's client does not raise
                warnings.filterwarnings("error", message="Failed to add the listener")
                session.streams.addListener(self._listener)
        except Exception as error:  # of py4j, of gRPC, or of PySpark
            raise SourceUnusable(self.name, brief(error)) from error

    @property
    def ended(self) -> bool:
        """As `EventSource.ended`."""
        try:
            return _is_stopped(self._session)
        except Exception:  # noqa: BLE001 - Spark that cannot even say so is gone
            return True

    def collect(self) -> float:
        """As `EventSource.collect`: a progress is told when its batch ends, and how late it is here cannot be known."""
        return 0.0

    def close(self) -> None:
        """As `EventSource.close`. Waits five seconds at most: Connect's client tries for ten minutes to reach a server that is gone."""
        if self.ended:
            return
        streams = self._session.streams
        with warnings.catch_warnings():  # of Connect's client, which has begun to end
            warnings.filterwarnings("ignore", message="Failed to remove the listener")
            _within(_PATIENCE_SECONDS, lambda: streams.removeListener(self._listener))

    def _deliver(self, event: dict[str, Any] | None) -> None:
        if event is None:
            self._job.lost(1)
        else:
            self._job.handle(event)


def _within(seconds: float, call: Callable[[], None]) -> None:
    """Call, and leave the call alone when it takes longer. Raises what it raises, and `TimeoutError`."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=run, name="quotascope-streaming", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError("Spark does not answer")
    if errors:
        raise errors[0]


def _is_stopped(session: Spark) -> bool:
    context = getattr(session, "_sc", None)  # not so under Connect
    if context is not None:
        return context._jsc is None  # noqa: SLF001 - PySpark has no public way
    return bool(getattr(session, "is_stopped", False))


def _listener(deliver: Spark) -> Spark:
    from pyspark.sql.streaming.listener import (  # noqa: PLC0415 - needs pandas under Connect: who does not use it need not have it
        StreamingQueryListener,
    )

    class Listener(StreamingQueryListener):
        """Turns what PySpark makes of the events back to what the JVM writes."""

        def onQueryStarted(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            deliver(_told(started, event))

        def onQueryProgress(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            deliver(_told(progress, event))

        def onQueryIdle(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            deliver(_told(idle, event))

        def onQueryTerminated(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            deliver(_told(terminated, event))

    return Listener()


def _told(convert: Spark, event: Spark) -> dict[str, Any] | None:
    try:
        converted: dict[str, Any] = convert(event)
    except Exception:  # noqa: BLE001 - an event of another PySpark is a lost event
        return None
    return converted


def started(event: Spark) -> dict[str, Any]:
    """A `QueryStartedEvent` as JsonProtocol writes it."""
    return {
        "Event": f"{_EVENT}QueryStartedEvent",
        "id": str(event.id),
        "runId": str(event.runId),
        "name": event.name,
        "timestamp": event.timestamp,
    }


def progress(event: Spark) -> dict[str, Any]:
    """A `QueryProgressEvent` as JsonProtocol writes it."""
    return {
        "Event": f"{_EVENT}QueryProgressEvent",
        "progress": json.loads(event.progress.json),
    }


def idle(event: Spark) -> dict[str, Any]:
    """A `QueryIdleEvent` as JsonProtocol writes it."""
    return {
        "Event": f"{_EVENT}QueryIdleEvent",
        "id": str(event.id),
        "runId": str(event.runId),
        "timestamp": event.timestamp,
    }


def terminated(event: Spark) -> dict[str, Any]:
    """A `QueryTerminatedEvent` as JsonProtocol writes it."""
    return {
        "Event": f"{_EVENT}QueryTerminatedEvent",
        "id": str(event.id),
        "runId": str(event.runId),
        "exception": event.exception,
        "errorClassOnException": getattr(event, "errorClassOnException", None),
    }
