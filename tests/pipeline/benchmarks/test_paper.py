import json
from typing import Any

import pytest
from benchmarks.pipeline import sides
from benchmarks.pipeline.figures import Figures
from benchmarks.pipeline.paper import PAGE, RESULTS, computed, measured, page

LINES, ROWS = 1_000_000, 2_000_000


def side(rows: int, *cpu: float, python: int = 0, jvm: int = 0) -> dict[str, Any]:
    """A side as the benchmark writes it, with a run for each CPU time."""
    runs = [{"cpu": each, "python": python, "jvm": jvm} for each in cpu]
    return {"rows": rows, "runs": runs}


@pytest.fixture
def results() -> dict[str, Any]:
    """Results of all cases, in round numbers."""
    facts = {"bytes_a_line": 1000.0, "packed_bytes_a_line": 100.0}
    facts |= {"table_bytes_a_line": 50.0, "history_bytes_a_line": 20.0}
    large = {"sides": {"large": side(ROWS, 1, python=400 << 20, jvm=1 << 30)}}
    small = {"sides": {"small": side(ROWS, 1, python=300 << 20, jvm=1 << 29)}}
    return {
        "ingest on Spark": {
            "facts": facts,
            "sides": {
                sides.ON_SPARK: side(LINES, 43.2, 99, 1),
                sides.HISTORY: side(LINES, 10),
            },
        },
        "replay": {
            "sides": {
                sides.candidates(sides.ON_SPARK, 1): side(ROWS, 2),
                sides.candidates(sides.ON_SPARK, sides.MANY): side(ROWS, 3),
            }
        },
        "growth": small,
        "skew": large,
        "entities": small,
    }


def test_arithmetic(results: dict[str, Any]) -> None:
    """The tables follow from medians and peaks: 10 TB are 10 billion lines of 1,000 bytes."""
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
