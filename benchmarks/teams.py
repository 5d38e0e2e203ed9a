"""
CPU time that teams add to a scrape: `python -m benchmarks teams`.

20,000 entities of one broker, and 1,000 teams with budgets: names of users, and patterns of client-ids. Both sides read
the same page of an agent, join it with the limits, apply the cap, write `/metrics` and compress it; they take turns.
Network and HTTP, which both would have, are left out: the share that the teams add is too large. A goal that is
missed is shown, not an error.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.clusters import CONFIGURED, TAKEN_AT, USERS, Cluster
from benchmarks.exposition import NOW, WARM_UP
from benchmarks.output import say
from benchmarks.shadow_scrape import page
from benchmarks.timing import cpu_timed, in_turns, ratios, spread

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer, gzipped
from quotascope.exporter.join import Join
from quotascope.exporter.limits import LimitsHealth
from quotascope.exporter.snapshot import SourceRead
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.exporter.teams import SoldKeeper, TeamAdder
from quotascope.metrics.catalog.teams import Clients, Team
from quotascope.metrics.kafka.entities import QuotaType

ENTITIES = 20_000
TEAMS = 1_000
GOAL = 0.05
CHANGES: Mapping[str, tuple[float, float]] = {
    "a tenth of the values": (0.1, 0.0),
    "all values": (1.0, 0.0),
    "a tenth, and a hundredth of the entities": (0.1, 0.01),
}


def teams() -> Iterator[Team]:
    """Yield as many teams, half of them with patterns; most own entities."""
    budgets = dict.fromkeys(QuotaType, 1e6)
    for number in range(TEAMS):
        clients = (
            Clients(user=f"user-{number % USERS}")
            if number % 2
            else Clients(client_id_pattern=f"client-.*{number:03d}"),
        )
        yield Team(name=f"team-{number}", clients=clients, budgets=budgets)


class Side:
    """An exporter's work for one scrape."""

    def __init__(self, owned: Sequence[Team] = ()) -> None:
        self._adder = TeamAdder(owned) if owned else None
        self._sold = SoldKeeper()
        self._reader, self._join, self._renderer = TextReader(), Join(), Renderer()
        self._cap = Cardinality(CardinalityConfig())

    def scrape(self, answer: bytes, reads: list[SourceRead]) -> None:
        """Process the agent's page up to the compressed text."""
        self._reader.read(answer)
        joined = self._join.snapshot(reads, CONFIGURED, LimitsHealth(), TAKEN_AT)
        sums = self._adder.of(joined) if self._adder else None
        snapshot = replace(self._cap.apply(joined), teams=sums, sold=self._sold.of(joined))
        gzipped(self._renderer.render(snapshot, NOW))


def compare(change: tuple[float, float], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of a scrape without and with teams, and the share that these add, round by round."""
    cluster, without, with_teams = Cluster(5 * ENTITIES), Side(), Side([*teams()])
    reads_of_agent: list[SourceRead] = []
    answer = b""

    def change_cluster(_: int) -> None:
        nonlocal reads_of_agent, answer
        cluster.step(*change)
        reads_of_agent = cluster.reads()
        answer = page(reads_of_agent)

    def scraped(side: Side) -> float:
        return cpu_timed(lambda: side.scrape(answer, reads_of_agent))[0]

    sides = {"without": partial(scraped, without), "with": partial(scraped, with_teams)}
    times = in_turns(sides, rounds, warm_up=WARM_UP, prepare=change_cluster)
    times["added"] = [ratio - 1 for ratio in ratios(times["with"], times["without"])]
    return times


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=15)


def main(options: argparse.Namespace) -> int:
    """Print a line for each kind of change: minimum, median and maximum."""
    for name, change in CHANGES.items():
        times = compare(change, options.rounds)
        verdict = "met" if statistics.median(times["added"]) < GOAL else "missed"
        say(
            f"{name}: without {spread(times['without'], scale=1e3)} ms, with {spread(times['with'], scale=1e3)} ms, "
            f"added {spread(times['added'], scale=100)} % (goal {GOAL:.0%}: {verdict})"
        )
    return 0
