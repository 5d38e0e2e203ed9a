from __future__ import annotations

from tests.exporter.examples import snapshot

from quotascope.exporter.counts import left_out
from quotascope.exporter.snapshot import Folds


def test_what_is_not_shown_one_by_one() -> None:
    """Every reason with its number; none when there is none."""
    assert left_out(snapshot()) == ""
    folds = Folds(overflow=1_200, excluded=3, idle=4)
    assert left_out(snapshot(folds=folds)) == "1200 folded, 3 excluded, 4 idle"
