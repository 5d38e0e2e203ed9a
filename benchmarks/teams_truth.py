"""
Bytes of teams against the brokers' own counters: `python -m benchmarks teams-truth`.

Three brokers whose leaders move, and 300 sessions of five roles as users. Two exporters count the bytes of the roles,
one of them under a cap of 50 entities; the brokers count records, and log each request. A goal that is missed is shown,
not an error.
"""

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.output import say
from tests.integration.truth import BOTH, CAP, WINDOW_SECONDS, Scrape, measure, three_brokers

GOAL = 0.01
"""Greatest difference from the brokers' counters."""
LOG_GOAL = 0.02
"""Greatest difference from the request logs."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--living", type=int, default=20, help="sessions at a time")
    parser.add_argument("--size", type=int, default=60_000, help="bytes of a record")
    parser.add_argument("--pace", type=float, default=10.0, help="records of a producer in a second")
    parser.add_argument("--every", type=float, default=WINDOW_SECONDS, help="seconds between scrapes")


def _worst(scrapes: Sequence[Scrape]) -> float:
    """Return the greatest relative difference of a team's rate to the sum of those that brokers reported."""
    return max(
        (
            scrape.rates[kind].get(team, 0.0) / reported - 1
            for scrape in scrapes
            for kind in BOTH
            for team, reported in scrape.reported[kind].items()
            if reported
        ),
        key=abs,
        default=math.nan,
    )


def main(options: argparse.Namespace) -> int:
    """Print a line for each direction and way."""
    with tempfile.TemporaryDirectory(prefix="quotascope-truth-") as folder, three_brokers(Path(folder)) as cluster:
        truth = measure(
            cluster,
            Path(folder),
            60 * options.minutes,
            count=options.sessions,
            every=options.every,
            living=options.living,
            size=options.size,
            pace=options.pace,
        )
    say(f"scrapes at most {truth.longest_pause:.1f} s apart; {truth.waits} records found a full queue")
    say(
        f"mean gap between requests {truth.gap:.2f} s, {truth.life:.0f} s of a session on a broker: expected excess of "
        f"counters {truth.excess:+.2%}"
    )
    for scrapes, name in zip(truth.scrapes, ("all entities", f"cap of {CAP}"), strict=True):
        say(
            f"rates of {len(scrapes)} scrapes, {name}, to those in the brokers' answers: {_worst(scrapes):+.2e} at most"
        )
    say(f"{truth.seconds:.1f} s, {truth.sessions} sessions, {truth.moves} leaders moved; entities shown: {truth.shown}")
    for kind in BOTH:
        brokers, logged = truth.brokers[kind], truth.total(truth.logged, kind)
        say(
            f"{kind.label}: brokers {brokers:,.0f} B of records, request logs {logged:,.0f} B ({logged / brokers - 1:+.2%})"
        )
        for sums, name in zip(truth.counted, ("all entities", f"cap of {CAP}"), strict=True):
            counted = truth.total(sums, kind)
            to_brokers, to_logs = counted / brokers - 1, counted / logged - 1
            met = "met" if abs(to_brokers) <= GOAL and abs(to_logs) <= LOG_GOAL else "missed"
            say(f"  exporter, {name}: {counted:,.0f} B, {to_brokers:+.2%} to brokers, {to_logs:+.2%} to logs: {met}")
            for team, amount in sorted(sums[kind].items()):
                of_log = truth.logged[kind].get(team, 0.0)
                say(f"    {team}: {amount:,.0f} B" + (f", {amount / of_log - 1:+.2%} to logs" if of_log else ""))
    return 0
