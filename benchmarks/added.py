"""CPU time that a part of the exporter adds to a scrape: two exporters take turns, one of them with the part."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from benchmarks.clusters import CONFIGURED, TAKEN_AT, Cluster
from benchmarks.exposition import NOW, WARM_UP
from benchmarks.output import say
from benchmarks.timing import cpu_timed, in_turns, ratios, spread

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer, gzipped
from quotascope.exporter.join.join import Join
from quotascope.exporter.limits import LimitsHealth
from quotascope.exporter.snapshot import Snapshot, SourceRead
from quotascope.exporter.sources.prometheus_text import TextReader

ENTITIES = 20_000
CHANGES: Mapping[str, tuple[float, float]] = {
    "a tenth of the values": (0.1, 0.0),
    "all values": (1.0, 0.0),
    "a tenth, and a hundredth of the entities": (0.1, 0.01),
}
Parts: TypeAlias = Callable[[Snapshot], Mapping[str, Any]]
"""Works out fields of a snapshot that the join does not have, from the joined one."""


class Side:
    """An exporter's work for one scrape."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._reader, self._join, self._renderer = TextReader(), Join(), Renderer()
        self._cap = Cardinality(CardinalityConfig())

    def scrape(self, answer: bytes, reads: list[SourceRead]) -> None:
        """Process the agent's page up to the compressed text."""
        self._reader.read(answer)
        joined = self._join.snapshot(reads, CONFIGURED, LimitsHealth(), TAKEN_AT)
        parts = self._parts(joined)
        gzipped(self._renderer.render(replace(self._cap.apply(joined), **parts), NOW))


def page(reads: list[SourceRead]) -> bytes:
    """Return the numbers as jmx_exporter writes them."""
    lines = []
    table = reads[0].table
    assert table is not None
    for column, value in zip(table.layout.columns, table.values, strict=True):
        tags = dict(column.bean.properties)
        name = column.attribute.replace("-", "_")
        labels = f'clientId="{tags["client-id"]}",resource="{tags["type"]}",user="{tags["user"]}"'
        lines.append(f"kafka_server_quota_{name}{{{labels}}} {value}")
    return "\n".join((*lines, "")).encode()


def compare(without: Parts, with_part: Parts, change: tuple[float, float], rounds: int) -> dict[str, list[float]]:
    """Return CPU seconds of a scrape without and with the part, and the share that it adds, round by round."""
    cluster = Cluster(5 * ENTITIES)
    reads_of_agent: list[SourceRead] = []
    answer = b""

    def change_cluster(_: int) -> None:
        nonlocal reads_of_agent, answer
        cluster.step(*change)
        reads_of_agent = cluster.reads()
        answer = page(reads_of_agent)

    def scraped(side: Side) -> float:
        return cpu_timed(lambda: side.scrape(answer, reads_of_agent))[0]

    sides = {"without": partial(scraped, Side(without)), "with": partial(scraped, Side(with_part))}
    times = in_turns(sides, rounds, warm_up=WARM_UP, prepare=change_cluster)
    times["added"] = [ratio - 1 for ratio in ratios(times["with"], times["without"])]
    return times


def report(without: Callable[[], Parts], with_part: Callable[[], Parts], goal: float, rounds: int) -> None:
    """Print a line for each kind of change: minimum, median and maximum; both parts are made anew for each."""
    for name, change in CHANGES.items():
        times = compare(without(), with_part(), change, rounds)
        verdict = "met" if statistics.median(times["added"]) < goal else "missed"
        say(
            f"{name}: without {spread(times['without'], scale=1e3)} ms, with {spread(times['with'], scale=1e3)} ms, "
            f"added {spread(times['added'], scale=100)} % (goal {goal:.0%}: {verdict})"
        )
