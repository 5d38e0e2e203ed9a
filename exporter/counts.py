"""What is counted over a whole snapshot, in words."""

from __future__ import annotations

import numpy as np

from quotascope.metrics import QuotaType

from .snapshot import TYPES, Snapshot, Usages
from .units import UNKNOWN


def left_out(snapshot: Snapshot) -> str:
    """How many and why, such as ``200 folded, 30 idle``; empty when all are shown."""
    folds = snapshot.folds
    counts = (
        (folds.overflow + snapshot.callbacks.folded, "folded"),
        (folds.excluded, "excluded"),
        (folds.idle, "idle"),
    )
    return ", ".join(f"{count} {what}" for count, what in counts if count)


def limits_unknown(usages: Usages) -> int:
    """How many entities may have a limit that is not known: no one can say how close to it they are."""
    return len(usages.where(usages.columns.layout.limits_unknown))


def throttles_unknown(usages: Usages) -> int:
    """How many entities may be throttled although no agent says so; mutations are left out, since their delays count as request throttles."""
    columns = usages.columns
    mutation = TYPES.index(QuotaType.CONTROLLER_MUTATION)
    reported_here = columns.layout.types != mutation
    return len(usages.where(reported_here & np.isnan(columns.throttle_time)))


def muted(snapshot: Snapshot) -> str:
    """
    How many connections no node reads from at this moment.

    ``unknown`` when no node reports its delay queues, and ``3 (1 of 2 nodes report it)`` when only some do, which not every agent's
    dialect lets through.
    """
    reporting = [node for node in snapshot.nodes if node.delay_queue_size]
    if not reporting:
        return UNKNOWN
    total = f"{sum(sum(node.delay_queue_size.values()) for node in reporting):.0f}"
    if len(reporting) == len(snapshot.nodes):
        return total
    return f"{total} ({len(reporting)} of {len(snapshot.nodes)} nodes report it)"
