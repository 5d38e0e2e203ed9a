"""How benchmarks of the pipeline measure, and what docs/scale.md computes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.pipeline import sides
from benchmarks.pipeline.figures import Figures
from benchmarks.pipeline.paper import PAGE, RESULTS, computed, measured, page
from benchmarks.pipeline.processes import Used, watch
from benchmarks.pipeline.runs import Side, in_turns

LINES, ROWS = 1_000_000, 2_000_000


def side(rows: int, *cpu: float, python: int = 0, jvm: int = 0) -> dict[str, Any]:
    runs = [{"cpu": each, "python": python, "jvm": jvm} for each in cpu]
    return {"rows": rows, "runs": runs}


def test_arithmetic() -> None:
    """The tables follow from medians and peaks: 10 TB are 10 billion lines of 1,000 bytes."""
    facts = {"bytes_a_line": 1000.0, "packed_bytes_a_line": 100.0}
    facts |= {"table_bytes_a_line": 50.0, "history_bytes_a_line": 20.0}
    large = {"sides": {"large": side(ROWS, 1, python=400 << 20, jvm=1 << 30)}}
    small = {"sides": {"small": side(ROWS, 1, python=300 << 20, jvm=1 << 29)}}
    replayed = {sides.candidates(sides.ON_SPARK, count): side(ROWS, cpu) for count, cpu in ((1, 2), (sides.MANY, 3))}
    results = {
        "ingest on Spark": {
            "facts": facts,
            "sides": {sides.ON_SPARK: side(LINES, 43.2, 99, 1), sides.HISTORY: side(LINES, 10)},
        },
        "replay": {"sides": replayed},
        "growth": small,
        "skew": large,
        "entities": small,
    }
    figures = Figures.of(results)
    shown = dict(measured(figures)) | dict(computed(figures))
    assert shown["CPU to read a line"] == "43.20 µs"
    assert shown["lines a day"] == "10.0 billion, 115,741/s"
    assert shown["cores to read the lines"] == "8.3"
    assert shown["cores to keep up, together"] == "10"
    assert shown["disk for history of 30 days"] == "6.00 TB"
    assert shown["cores to replay 1 day within an hour"] == "7"
    assert shown["memory of an executor of 4 cores"] == "2.6 GiB"


def test_page_is_computed_from_what_was_measured() -> None:
    """The tables of docs/scale.md are those of docs/scale.json: `python -m benchmarks.pipeline.paper` writes them."""
    figures = Figures.of(json.loads(RESULTS.read_text(encoding="utf-8")))
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, figures) == text


GROW = "held = b'x' * (64 << 20); sum(range(3_000_000)); input()"


def test_child_is_seen() -> None:
    """Memory and CPU time of a process that was born and ended under watch are reported."""
    command = [sys.executable, "-c", GROW]
    with watch(os.getpid()) as used, subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        while peak(used, child.pid) < 64 << 20:
            assert child.poll() is None
        child.communicate(b"\n")
    assert used.peak("python") >= 64 << 20
    assert used.cpu > 0


def peak(used: Used, pid: int) -> int:
    return used.processes[pid].peak if pid in used.processes else 0


def test_peak_begins_with_the_watch() -> None:
    """What a process held before the watch, and holds no more, does not count."""
    mine = os.getpid()
    held = os.urandom(1 << 20) * 128
    with watch(mine) as before:
        pass
    del held
    with watch(mine) as after:
        pass
    assert peak(before, mine) - peak(after, mine) > 100 << 20


def test_each_side_comes_before_and_after_each_other() -> None:
    """What one leaves behind, such as warm workers, the next finds in every second round only."""
    done: list[str] = []
    sides = [Side(name=name, rows=1, work=partial(done.append, name), pid=os.getpid()) for name in "abc"]
    in_turns("turns", sides, rounds=4)
    assert "".join(done) == "abc" + "cba" + "abc" + "cba"
    assert [len(side.runs) for side in sides] == [4, 4, 4]
