"""
CPU time that teams add to a scrape: `python -m benchmarks teams`.

20,000 entities of one broker, and 1,000 teams with budgets: names of users, and patterns of client-ids. Both sides read
the same page of an agent, join it with the limits, apply the cap, write `/metrics` and compress it; they take turns.
Network and HTTP, which both would have, are left out: the share that the teams add is too large. A goal that is
missed is shown, not an error.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from benchmarks.added import Parts, report
from benchmarks.clusters import USERS

from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.teams import SoldKeeper, TeamAdder, TeamCounter
from quotascope.metrics.catalog.teams import Clients, Team
from quotascope.metrics.kafka.entities import QuotaType

TEAMS = 1_000
GOAL = 0.05


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


def parts_with(owned: Sequence[Team] = ()) -> Parts:
    """Return what adds the usage of teams up, of none by default, and finds what is sold of each broker."""
    adder, sold = TeamAdder(owned) if owned else None, SoldKeeper()

    counter, seconds = TeamCounter(), count(0.0, 10.0)

    def parts(joined: Snapshot) -> Mapping[str, Any]:
        teams = None
        if adder:
            sums = adder.add_up(joined)
            teams = counter.count(sums, adder.usage_on_fresh_nodes(joined, sums), joined, next(seconds))
        return {"teams": teams, "sold": sold.update(joined)}

    return parts


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=15)


def main(options: argparse.Namespace) -> int:
    """Print a line for each kind of change."""
    report(parts_with, lambda: parts_with([*teams()]), GOAL, options.rounds)
    return 0
