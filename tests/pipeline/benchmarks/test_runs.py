"""Sides of a comparison work in turns."""

from __future__ import annotations

import os
from functools import partial

from benchmarks.pipeline.runs import Side, in_turns


def test_each_side_comes_before_and_after_each_other() -> None:
    """What one leaves behind, such as warm workers, the next finds in every second round only."""
    done: list[str] = []
    sides = [Side(name=name, rows=1, work=partial(done.append, name), pid=os.getpid()) for name in "abc"]
    in_turns("turns", sides, rounds=4)
    assert "".join(done) == "abc" + "cba" + "abc" + "cba"
    assert [len(side.runs) for side in sides] == [4, 4, 4]
