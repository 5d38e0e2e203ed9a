"""
CPU time that shadows add to a scrape: `python -m benchmarks shadow-scrape`.

20,000 entities of one broker, and three shadows: one that halves all limits, one that adds all clients of a user up,
and one with rules for a hundred users. Both sides read the same page of an agent, join it with the limits, apply the
cap, write `/metrics` and compress it; they take turns. Network and HTTP, which both would have, are left out: the share
that the shadows add is overstated. A goal that is missed is shown, not an error.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.added import Parts, report
from benchmarks.clusters import LIMITS

from quotascope.exporter.shadow import Shadows
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

GOAL = 0.10


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


def parts_with(candidates: Sequence[Candidate] = ()) -> Parts:
    """Return what evaluates the candidates."""
    shadows = Shadows(candidates)

    def parts(joined: Snapshot) -> Mapping[str, Any]:
        return {"shadows": shadows.evaluate(joined, set())}

    return parts


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=15)


def main(options: argparse.Namespace) -> int:
    """Print a line for each kind of change."""
    report(parts_with, lambda: parts_with([*candidates()]), GOAL, options.rounds)
    return 0
