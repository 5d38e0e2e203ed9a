"""Alerts on budgets: of the time in which an entity with an objective may be throttled, too much is spent."""

from __future__ import annotations

from collections.abc import Iterator

from .. import recorded
from ..links import Dashboard, Site
from ..promql import above, both, series
from ..rule import ENTITY, ENTITY_LABELS, THREE_DIGITS, Alert, AlertScope
from ..settings import AlertSeverity
from ..thresholds import BURN, BURN_FAST, BURN_SLOW


def burning(site: Site) -> Iterator[Alert]:
    """
    One alert for each pair of windows (Google's SRE workbook, "Alerting on SLOs").

    The long window shows that a good part of the budget is gone, the short one that entities are still throttled.
    """
    labels = site.keys("slo", *ENTITY_LABELS)
    for name, severity, long, short, threshold, wait, in_words in (
        ("Fast", AlertSeverity.CRITICAL, 60, 5, BURN_FAST, "1m", "hour"),
        ("", AlertSeverity.WARNING, 360, 30, BURN, "5m", "6 hours"),
        ("Slowly", AlertSeverity.WARNING, 4320, 360, BURN_SLOW, "15m", "3 days"),
    ):
        spent, still = (above(series(recorded.BURNS[minutes]), site.value(threshold)) for minutes in (long, short))
        # the budget of an entity that is gone is not spent any more
        here = f"max by ({', '.join(labels)}) ({recorded.INSTANCE_BURN})"
        yield Alert(
            name=f"KafkaQuotaBudgetBurns{name}",
            expr=both(both(spent, still, labels), here, labels),
            labels=("slo", *ENTITY_LABELS),
            severity=severity,
            scope=AlertScope.ENTITY,
            wait=wait,
            keep="10m",
            summary=_SUMMARIES[name],
            description=f"In the last {in_words}, throttles of {ENTITY} spent the budget of the objective {{{{ printf `%q` $labels.slo }}}} {THREE_DIGITS} times as fast as it allows.",
            dashboard=Dashboard.ENTITY,
            thresholds=(threshold,),
        )


_SUMMARIES = {
    "Fast": "A client's budget of throttled time will be gone within two days.",
    "": "A client's budget of throttled time will be gone within days.",
    "Slowly": "A client's budget of throttled time will not last.",
}
