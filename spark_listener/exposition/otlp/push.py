"""Pushes the books of jobs at an interval, and once more at the end."""

from __future__ import annotations

import logging
import time

from opentelemetry.sdk.metrics.export import MetricExportResult

from ..collector import Snapshots
from ..repeating import Repeating
from ..settings import PushSettings
from .exporters import exporter_of
from .model import metrics_data, resource_of
from .quiet import quiet

_LOG = logging.getLogger(__name__)
FLUSH_SECONDS = 5.0
"""What the end of a job waits at most for the last push."""


class Push:
    """
    Pushes from a thread of its own, at once and then at every interval.

    A receiver that is down costs a line in the log when that begins, and one when it ends.

    Args:
        settings: where to.
        snapshots: gives the books, once for each push.
        app_id: `spark.app.id`.
        cluster: the Kafka cluster, None for none.

    """

    def __init__(
        self,
        settings: PushSettings,
        snapshots: Snapshots,
        *,
        app_id: str,
        cluster: str | None,
    ) -> None:
        self._place = settings.place
        self._snapshots = snapshots
        self._resource = resource_of(app_id)
        self._cluster = cluster
        self._began_ns = time.time_ns()
        self._failing = False
        self._reason = ""
        self._exporter = exporter_of(settings, self._heard)
        self._repeating = Repeating(
            self._push, settings.interval_seconds, "quotascope-otlp", self._push
        )

    def close(self) -> None:
        """Push the last numbers; what takes longer than five seconds is given up."""
        if not self._repeating.close(FLUSH_SECONDS):
            _LOG.warning("the last metrics did not reach %s in time", self._place)
        with quiet():
            self._exporter.shutdown()

    def _push(self) -> None:
        times = (self._began_ns, time.time_ns())
        data = metrics_data(self._snapshots(), self._resource, times, self._cluster)
        self._reason = ""
        with quiet() as codes:
            result = self._exporter.export(data)
        reason = self._reason or (codes[-1] if codes else "no answer")
        self._note(reason if result is not MetricExportResult.SUCCESS else None)

    def _heard(self, reason: str) -> None:
        self._reason = reason

    def _note(self, failure: str | None) -> None:
        failed = failure is not None
        if failed and not self._failing:
            _LOG.warning("metrics cannot be pushed to %s: %s", self._place, failure)
        elif self._failing and not failed:
            _LOG.info("metrics are pushed to %s again", self._place)
        self._failing = failed
