from __future__ import annotations

import gc

from quotascope.exporter.garbage import search_rarely


def test_a_burst_of_objects_is_not_gone_through() -> None:
    """As many objects as a large cluster has are made without a single full search."""
    thresholds = gc.get_threshold()
    try:
        search_rarely()
        before = gc.get_stats()[2]["collections"]
        kept = [[at] for at in range(200_000)]
        assert gc.get_stats()[2]["collections"] == before
        assert len(kept) == 200_000
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
