"""
What shadows add to the CPU time of a scrape: `python -m benchmarks.shadow_scrape`.

20,000 entities of one broker, and three shadows: one that halves all limits, one that adds all clients of a user up, and one with rules for a hundred users.
Both sides read the same page of an agent, join it with the limits, apply the cap, write `/metrics` and compress it; they take turns. Network and HTTP, which
both would have, are left out: the share that the shadows add is overstated. A goal that is missed is shown, not an error.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace

from benchmarks.clusters import CONFIGURED, LIMITS, TAKEN_AT, Cluster
from benchmarks.exposition import NOW, WARM_UP, spread, timed

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer, gzipped
from quotascope.exporter.join import Join
from quotascope.exporter.limits import LimitsHealth
from quotascope.exporter.shadow import Shadows
from quotascope.exporter.snapshot import SourceRead
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.metrics.entities import Name
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
    """The three shadows."""

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
    """The numbers as jmx_exporter writes them."""
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
        """From the agent's page to the compressed text."""
        self._reader.read(answer)
        joined = self._join.snapshot(reads, CONFIGURED, LimitsHealth(), TAKEN_AT)
        shadows = self._shadows.of(joined, set())
        shown = replace(self._cap.apply(joined), shadows=shadows)
        gzipped(self._renderer.render(shown, NOW))


def compare(change: tuple[float, float], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of a scrape without and with shadows, and the share that these add, round by round."""
    cluster, without, beside = Cluster(5 * ENTITIES), Side(Shadows()), Side(Shadows(candidates()))
    times: dict[str, list[float]] = {"without": [], "with": [], "added": []}
    for number in range(rounds + WARM_UP):
        cluster.step(*change)
        reads = cluster.reads()
        answer = page(reads)
        sides = [(without, 0), (beside, 1)]
        spent = [0.0, 0.0]
        for side, place in sides if number % 2 else sides[::-1]:
            spent[place], _ = timed(lambda: side.scrape(answer, reads))  # noqa: B023
        if number >= WARM_UP:
            for name, value in zip(times, (*spent, spent[1] / spent[0] - 1), strict=True):
                times[name].append(value)
    return times


def main() -> None:
    """Print a line for each kind of change."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for name, change in CHANGES.items():
        times = compare(change, rounds)
        met = "met" if statistics.median(times["added"]) < GOAL else "missed"
        print(  # noqa: T201
            f"{name}: without {spread(times['without'])} ms, with {spread(times['with'])} ms, added {spread(times['added'], 100)} % (goal {GOAL:.0%}: {met})"
        )


if __name__ == "__main__":
    main()
