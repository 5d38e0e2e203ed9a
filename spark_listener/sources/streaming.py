"""Events of streaming queries, the same in classic mode and under Spark Connect."""

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
    Python `StreamingQueryListener`: starts, progress and ends of the session's queries, without tasks.

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
        """True if the application has ended."""
        try:
            context = getattr(self._session, "_sc", None)  # not under Connect
            if context is not None:
                return context._jsc is None  # noqa: SLF001 - PySpark has no public way
            return bool(getattr(self._session, "is_stopped", False))
        except Exception:  # noqa: BLE001 - a session that raises here is gone
            return True

    def collect(self) -> float:
        """Return 0: a progress comes when its batch ends; its delay is unknown."""
        return 0.0

    def close(self) -> None:
        """Detach. Waits five seconds at most: Connect's client tries for ten minutes to reach a server that is gone."""
        if self.ended:
            return
        streams = self._session.streams
        with warnings.catch_warnings():  # an error of Connect's client, which is about to end
            warnings.filterwarnings("ignore", message="Failed to remove the listener")
            _within(_PATIENCE_SECONDS, lambda: streams.removeListener(self._listener))

    def _deliver(self, event: dict[str, Any] | None) -> None:
        """Pass an event on to the job; None is a lost one."""
        if event is None:
            self._job.lost(1)
        else:
            self._job.handle(event)


def _within(seconds: float, call: Callable[[], None]) -> None:
    """Call a function, and abandon the call when it takes longer. Raises its errors, and `TimeoutError`."""
    errors: list[Exception] = []

    def run() -> None:
        """Call the function, and keep its error."""
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


def _listener(deliver: Callable[[dict[str, Any] | None], None]) -> Spark:
    """Return a listener of PySpark that delivers events as documents, or None for one that cannot be read."""
    from pyspark.sql.streaming.listener import (  # noqa: PLC0415 - needs pandas under Connect
        StreamingQueryListener,
    )

    def handle(kind: str, event: Spark, *fields: str) -> None:
        """Deliver an event with the named fields as a JSON document."""
        try:
            document: dict[str, Any] = {"Event": f"{_EVENT}{kind}"}
            if kind == "QueryProgressEvent":
                document["progress"] = json.loads(event.progress.json)
            else:
                document |= {"id": str(event.id), "runId": str(event.runId)}
                document |= {name: getattr(event, name) for name in fields}
        except Exception:  # noqa: BLE001 - an event of another PySpark is a lost event
            deliver(None)
        else:
            deliver(document)

    class QueryListener(StreamingQueryListener):
        """Listener that turns PySpark's events back to what JsonProtocol writes in the JVM."""

        def onQueryStarted(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            handle("QueryStartedEvent", event, "name", "timestamp")

        def onQueryProgress(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            handle("QueryProgressEvent", event)

        def onQueryIdle(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            handle("QueryIdleEvent", event, "timestamp")

        def onQueryTerminated(self, event: Spark) -> None:  # noqa: N802 - PySpark's name
            handle("QueryTerminatedEvent", event)

    return QueryListener()
