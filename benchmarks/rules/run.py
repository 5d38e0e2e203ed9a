"""
Times our rules and the queries of our dashboards in a real Prometheus: `make bench-rules`.

10,000 quota entities on ten brokers, as the exporter writes them, a minute apart for 50 minutes, and six hours of what
alerts look back at. Rules are then evaluated every minute, all of them at about the same time. When they have been,
each rule is asked for by itself, and each query of each dashboard as Grafana asks it for the last hour: of the
dashboards as they are, and of those that read recorded series (`--recorded`).
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.output import STDERR, write_json
from benchmarks.rules.costs import Cost, table
from benchmarks.rules.stage import Stage, prepared
from benchmarks.rules.tape import STEP_SECONDS
from benchmarks.timing import timed
from rich.console import Console
from tests.integration.alerting.questions import Question, questions
from tools.pictures.prometheus import Prometheus as Grafana

from quotascope.alerts import Site
from quotascope.alerts.render import RuleGroup, alert_groups, recording_groups
from quotascope.alerts.settings import Profile
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

GOAL_SECONDS: Final = 1.0
REPEATS: Final = 3
PATIENCE_SECONDS: Final = 10.0
"""Total time of a query after which it is not repeated."""
CHOSEN: Final = {
    "cluster": "bench",
    "user": "user-0007",
    "client_id": "Produce-client-00007",
}


def evaluations(stage: Stage, rounds: int) -> list[Cost]:
    """
    Time so many evaluations of each group, as Prometheus reports.

    The first one, which finds nothing in memory, is left out.
    """
    by_group: dict[str, dict[str, float]] = {}
    while not by_group or min(map(len, by_group.values())) <= rounds:
        for group in stage.prometheus.get("rules")["groups"]:
            times = by_group.setdefault(group["name"], {})
            if not group["lastEvaluation"].startswith("0001"):
                times[group["lastEvaluation"]] = group["evaluationTime"]
            _must_be_well(group)
        time.sleep(1)
    return [
        Cost(name=group["name"], seconds=tuple(by_group[group["name"]].values())[1:], interval=_interval(group))
        for group in _groups()
    ]


def _must_be_well(group: dict[str, Any]) -> None:
    for rule in group["rules"]:
        if rule["health"] == "err":
            raise RuntimeError(f"{rule['name']}: {rule['lastError']}")


def alone(stage: Stage, end: float) -> list[Cost]:
    """Time the rules of each group as of a moment, one rule after the other, while nothing else happens."""
    return [_of_group(stage, group, end) for group in _groups()]


def _of_group(stage: Stage, group: RuleGroup, end: float) -> Cost:
    def ask() -> int:
        answers = [
            stage.prometheus.get("query", query=rule["expr"], time=str(end))["result"] for rule in group["rules"]
        ]
        return sum(map(len, answers))

    return repeated(group["name"], ask, stage, interval=_interval(group))


def _groups() -> tuple[RuleGroup, ...]:
    site = Site(profile=Profile.ALL)
    return (*recording_groups(site), *alert_groups(site))


def _interval(group: RuleGroup) -> float:
    """Return the seconds that an evaluation may take; Prometheus' default is a minute."""
    return 60 * float(group.get("interval", "1m").removesuffix("m"))


def queries(stage: Stage, end: float, *, recorded: bool) -> list[Cost]:
    """Time every query of every dashboard over the hour before a moment, the slowest first."""
    grafana = Grafana(
        f"http://{stage.prometheus.address}", end=end, minutes=60, variables=CHOSEN, scrape_seconds=STEP_SECONDS
    )
    models = grafana_dashboards(Scope(recorded=recorded)).values()
    costs = [asked(question, grafana, stage) for model in models for question in questions(model)]
    if grafana.refused:
        raise RuntimeError("\n".join(grafana.refused))
    return sorted(costs, key=lambda cost: -cost.median)


def asked(question: Question, grafana: Grafana, stage: Stage) -> Cost:
    """Ask one several times."""
    return repeated(str(question), lambda: len(question.answered(grafana)), stage)


def repeated(name: str, ask: Callable[[], int], stage: Stage, interval: float = 0) -> Cost:
    """Do several times what gives so many series, at least once."""
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    series = 0
    while len(seconds) < REPEATS and sum(seconds) < PATIENCE_SECONDS:
        worked = stage.measured("process_cpu_seconds_total")
        took, series = timed(ask)
        seconds.append(took)
        cpu_seconds.append(stage.measured("process_cpu_seconds_total") - worked)
    return Cost(name=name, seconds=tuple(seconds), cpu_seconds=tuple(cpu_seconds), series=series, interval=interval)


def measured(options: argparse.Namespace) -> Iterator[tuple[str, list[Cost]]]:
    """Yield what was timed, and what it cost."""
    with (
        tempfile.TemporaryDirectory(prefix="quotascope-rules-") as name,
        prepared(options.scale, Path(name)) as stage,
    ):
        STDERR.log("evaluating the rules")
        stage.evaluate_rules()
        yield "rules, all together", evaluations(stage, options.rounds)
        end = time.time()
        stage.rest()
        yield "rules, one after the other", alone(stage, end)
        for kind in ("recorded", "plain"):
            STDERR.log(f"asking the dashboards' queries, {kind}")
            yield kind, queries(stage, end, recorded=kind == "recorded")
        used = stage.measured("process_resident_memory_bytes")
        STDERR.log(f"{stage.tape.series:,} series, {used / (1 << 30):.1f} GiB")


def print_costs(kind: str, costs: list[Cost], slowest: int) -> None:
    """Print a table."""
    console = Console(width=150)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    if kind.startswith("rules"):
        total = sum(cost.median for cost in costs)
        console.print(table(f"{kind}: {total:.2f} s; {load}", costs))
        return
    slow = sum(cost.median > GOAL_SECONDS for cost in costs)
    title = f"dashboards, {kind}: {slow} of {len(costs)} queries above 1 s; {load}"
    console.print(table(title, costs[:slowest], GOAL_SECONDS))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--scale", type=float, default=1.0, help="share of 10,000")
    parser.add_argument("--rounds", type=int, default=3, help="evaluations")
    parser.add_argument("--slowest", type=int, default=15, help="queries to show")
    parser.add_argument("--json", type=Path, help="file to write the results to")


def main(options: argparse.Namespace) -> int:
    """Print the tables and perhaps write them as JSON."""
    results = {}
    for kind, costs in measured(options):
        print_costs(kind, costs, options.slowest)
        results[kind] = [asdict(cost) for cost in costs]
    write_json(options.json, results)
    return 0
