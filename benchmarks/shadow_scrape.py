"""
CPU time that shadows add to a scrape: `python -m benchmarks shadow-scrape`.

20,000 entities of one broker, and three shadows: one that halves all limits, one that adds all clients of a user up,
and one with rules for a hundred users. Both sides read the same page of an agent, join it with the limits, apply the
cap, write `/metrics` and compress it; they take turns. Network and HTTP, which both would have, are left out: the share
that the shadows add is overreads_of_agentd. A goal that is missed is shown, not an error.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from benchmarks.clusters import CONFIGURED, LIMITS, TAKEN_AT, Cluster
from benchmarks.exposition import NOW, WARM_UP
from benchmarks.output import say
from benchmarks.timing import cpu_timed, in_turns, ratios, spread

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer, gzipped
from quotascope.exporter.join import Join
from quotascope.exporter.limits import LimitsHealth
from quotascope.exporter.shadow import Shadows
from quotascope.exporter.snapshot import SourceRead
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

ENTITIES = 20_000
GOAL = 0.10
CHANGES: Mapping[str, tuple[float, float]] = {
    "a tenth of the values": (0.1, 0.0),
    "all values": (1.0, 0.0),
    "a tenth, and a hundredth of the entities": (0.1, 0.01),
}


def candidates() -> Iterator[Candidate]:
    """Yield the three shadows."""

    def all_of(user: Name, client_id: Name | None, share: float) -> QuotaSet:
        values = {kind.quota_key: share * limit for kind, limit in LIMITS.items()}
        return QuotaSet({QuotaEntity(user, client_id): values})

    half = all_of(DEFAULT, DEFAULT, 0.5)
    yield Candidate(name="half", quotas=half, added=half)
    users = all_of(DEFAULT, None, 10.0)
    yield Candidate(name="by user", quotas=users, based=True)
    few = QuotaSet(
        {entity: values for number in range(100) for entity, values in all_of(f"user-{number}", DEFAULT, 0.25).items()}
    )
    yield Candidate(name="a hundred users", quotas=few, added=few)


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


class Side:
    """An exporter's work for one scrape."""

    def __init__(self, shadows: Shadows) -> None:
        self._shadows = shadows
        self._reader, self._join, self._renderer = TextReader(), Join(), Renderer()
        self._cap = Cardinality(CardinalityConfig())

    def scrape(self, answer: bytes, reads: list[SourceRead]) -> None:
        """Process the agent's page up to the compressed text."""
        self._reader.read(answer)
        joined = self._join.snapshot(reads, CONFIGURED, LimitsHealth(), TAKEN_AT)
        shadows = self._shadows.of(joined, set())
        snapshot = replace(self._cap.apply(joined), shadows=shadows)
        gzipped(self._renderer.render(snapshot, NOW))


def compare(change: tuple[float, float], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of a scrape without and with shadows, and the share that these add, round by round."""
    cluster, without, with_shadows = Cluster(5 * ENTITIES), Side(Shadows()), Side(Shadows(candidates()))
    reads_of_agent: list[SourceRead] = []
    answer = b""

    def change_cluster(_: int) -> None:
        nonlocal reads_of_agent, answer
        cluster.step(*change)
        reads_of_agent = cluster.reads()
        answer = page(reads_of_agent)

    def scraped(side: Side) -> float:
        return cpu_timed(lambda: side.scrape(answer, reads_of_agent))[0]

    sides = {"without": partial(scraped, without), "with": partial(scraped, with_shadows)}
    times = in_turns(sides, rounds, warm_up=WARM_UP, prepare=change_cluster)
    times["added"] = [ratio - 1 for ratio in ratios(times["with"], times["without"])]
    return times


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=15)


def main(options: argparse.Namespace) -> int:
    """Print a line for each kind of change."""
    rounds = options.rounds
    for name, change in CHANGES.items():
        times = compare(change, rounds)
        verdict = "met" if statistics.median(times["added"]) < GOAL else "missed"
        say(
            f"{name}: without {spread(times['without'], scale=1e3)} ms, with {spread(times['with'], scale=1e3)} ms, added {spread(times['added'], scale=100)} % (goal {GOAL:.0%}: {verdict})"
        )
    return 0
