"""How many entities are not shown one by one, in words."""

from __future__ import annotations

from .snapshot import Snapshot


def left_out(snapshot: Snapshot) -> str:
    """How many and why, such as ``200 folded, 30 idle``; empty when all are shown."""
    folds = snapshot.folds
    counts = (
        (folds.overflow + snapshot.callbacks.folded, "folded"),
        (folds.excluded, "excluded"),
        (folds.idle, "idle"),
    )
    return ", ".join(f"{count} {what}" for count, what in counts if count)
