"""The measured figures that docs/engineering/scale.md reckons with, out of what the benchmark wrote."""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.pipeline import sides

Results = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Sizes in bytes, CPU times in seconds of one core."""

    line: float
    """A line of a request log."""
    packed_line: float
    """The same, compressed."""
    request: float
    """A line's row in the table of requests."""
    row: float
    """A row of history, with its share of the sums by second, minute and hour."""
    ingest: float
    """Time to read a line."""
    history: float
    """Time to make a row of history, and its sums."""
    one: float
    """Time to replay a row for one candidate."""
    many: float
    """The same for many candidates."""
    worker: float
    """The largest Python worker, with a giant entity, too."""
    jvm: float
    """Spark's JVM, of whatever work of ours."""

    @classmethod
    def of(cls, results: Results) -> Self:
        """Take them out of the results of all cases."""
        logs = results["ingest on Spark"]
        replays = results["replay"]
        shaped = [results[name]["sides"] for name in ("growth", "skew", "entities")]
        runs = [run for sides in shaped for side in sides.values() for run in side["runs"]]
        return cls(
            line=logs["facts"]["bytes_a_line"],
            packed_line=logs["facts"]["packed_bytes_a_line"],
            request=logs["facts"]["table_bytes_a_line"],
            row=logs["facts"]["history_bytes_a_line"],
            ingest=cpu(logs, sides.ON_SPARK),
            history=cpu(logs, sides.HISTORY),
            one=cpu(replays, sides.candidates(sides.ON_SPARK, 1)),
            many=cpu(replays, sides.candidates(sides.ON_SPARK, sides.MANY)),
            worker=max(run["python"] for run in runs),
            jvm=max(run["jvm"] for run in (*runs, *_on_spark(logs), *_on_spark(replays))),
        )


def _on_spark(outcome: Results) -> Iterator[Mapping[str, int]]:
    """Yield our runs whose work Spark did."""
    for name, side in outcome["sides"].items():
        if name.startswith((sides.ON_SPARK, sides.HISTORY)):
            yield from side["runs"]


def cpu(outcome: Results, name: str) -> float:
    """Return CPU seconds a row, the median of the runs."""
    side = outcome["sides"][name]
    return float(statistics.median(run["cpu"] for run in side["runs"]) / side["rows"])
