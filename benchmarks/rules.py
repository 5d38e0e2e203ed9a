"""
Times our rules and the queries of our dashboards in a real Prometheus: `make bench-rules`.

10,000 quota entities on ten brokers, as the exporter writes them, a minute apart for 50 minutes, and six hours of what
alerts look back at. Rules are then evaluated every 15 s, and each query of each dashboard is asked as Grafana asks it for
the last hour: of the dashboards as they are, and of those that read recorded series (`--recorded`).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from benchmarks.fleet import Fleet
from benchmarks.tape import PARTS, STEP_SECONDS, Tape, playing
from rich.console import Console
from rich.table import Table
from tests.integration.alerting.questions import Question, questions
from tests.integration.prometheus import Prometheus
from tools.pictures.prometheus import Prometheus as Grafana

from quotascope.alerts import Site
from quotascope.alerts.write import rule_files
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

CLUSTER = "bench"
MINUTES = 50
"""How much is played: Prometheus takes nothing older than an hour."""
HISTORY_HOURS = 5.2
SCRAPE_SECONDS = 6
EVERY_SECONDS = 15
"""How often rules are evaluated."""
GOAL_SECONDS = 1.0
REPEATS = 3
CHOSEN = {"cluster": CLUSTER, "user": "user-0007", "client_id": "Produce-client-00007"}
STDERR = Console(stderr=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of something that was done several times."""

    name: str
    seconds: tuple[float, ...]
    series: int = 0
    """How many came out."""

    @property
    def median(self) -> float:
        """Half took longer."""
        return statistics.median(self.seconds)


def configure(folder: Path, address: str, *rules: Path) -> Mapping[str, Any]:
    """What Prometheus is to do; the parts of the page look like one exporter."""
    config = {
        "global": {
            "scrape_interval": f"{SCRAPE_SECONDS}s",
            "scrape_timeout": f"{SCRAPE_SECONDS}s",
            "evaluation_interval": f"{EVERY_SECONDS}s",
        },
        "rule_files": [str(each) for each in rules],
        "scrape_configs": [
            {
                "job_name": "quotascope",
                "static_configs": [
                    {
                        "targets": [address],
                        "labels": {
                            "__metrics_path__": f"/{part}",
                            "instance": "exporter:9840",
                            "cluster": CLUSTER,
                        },
                    }
                    for part in range(PARTS)
                ],
                # what rules recorded has no target
                "metric_relabel_configs": [
                    {
                        "source_labels": ["__name__"],
                        "regex": ".+:.+",
                        "target_label": label,
                        "replacement": "",
                    }
                    for label in ("job", "instance")
                ],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    return config


def write_rules(folder: Path) -> Iterator[Path]:
    """Write our rules, all evaluated equally often."""
    for name in ("quotascope-recording.yaml", "quotascope-alerts.yaml"):
        rules = yaml.safe_load(rule_files(Site())[name])
        for group in rules["groups"]:
            group.pop("interval", None)
        (folder / name).write_text(yaml.safe_dump(rules))
        yield folder / name


def put_history(tape: Tape, folder: Path) -> None:
    """Make blocks of what rules recorded before the tape begins."""
    text = folder / "history.txt"
    with text.open("wb") as file:
        file.writelines(tape.earlier(HISTORY_HOURS, CLUSTER))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run(
        [*command, str(text), str(folder / "data")], check=True, capture_output=True
    )
    text.unlink()


@contextmanager
def prepared(scale: float, folder: Path) -> Iterator[tuple[Prometheus, Tape]]:
    """Run a Prometheus that has seen the whole tape, and has our rules."""
    tape = Tape(Fleet(scale), time.time() - 60 * MINUTES)
    STDERR.log(f"{tape.series:,} series; writing {HISTORY_HOURS} hours of history")
    put_history(tape, folder)
    with playing(tape) as player:
        address = f"127.0.0.1:{player.server_port}"
        config = configure(folder, address)
        with running(folder, config) as prometheus:
            STDERR.log(f"playing {MINUTES} minutes")
            wait_until(lambda: tape.behind < STEP_SECONDS, 60 * MINUTES)
            player.history = False
            configure(folder, address, *write_rules(folder))
            reload(prometheus)
            yield prometheus, tape


@contextmanager
def running(folder: Path, config: Mapping[str, Any]) -> Iterator[Prometheus]:
    """Run a Prometheus that can be told to read its configuration again."""
    prometheus = Prometheus(folder, config, "--web.enable-lifecycle")
    try:
        wait_until(lambda: ready(prometheus), 120)
        yield prometheus
    finally:
        prometheus.child.end(60)


def ready(prometheus: Prometheus) -> bool:
    """Tell whether it answers."""
    try:
        return bool(prometheus.get("status/buildinfo"))
    except AssertionError:
        return False


def reload(prometheus: Prometheus) -> None:
    """Let it read its configuration again."""
    command = ["curl", "-sf", "-X", "POST", f"http://{prometheus.address}/-/reload"]
    subprocess.run(command, check=True)


def wait_until(done: Callable[[], bool], seconds: float) -> None:
    """Wait for something to come true."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("Prometheus takes too long")
        time.sleep(0.5)


def evaluations(prometheus: Prometheus, rounds: int) -> list[Cost]:
    """Time so many evaluations of each group, as Prometheus tells; the first one, which finds nothing in memory, is left out."""
    seen: dict[str, dict[str, float]] = {}
    while not seen or min(map(len, seen.values())) <= rounds:
        for group in prometheus.get("rules")["groups"]:
            if not group["lastEvaluation"].startswith("0001"):
                times = seen.setdefault(group["name"], {})
                times[group["lastEvaluation"]] = group["evaluationTime"]
            for rule in group["rules"]:
                if rule["health"] == "err":
                    raise RuntimeError(f"{rule['name']}: {rule['lastError']}")
        time.sleep(2)
    return [
        Cost(name=name, seconds=tuple(times.values())[1:])
        for name, times in seen.items()
    ]


def queries(prometheus: Prometheus, *, recorded: bool) -> list[Cost]:
    """Time every query of every dashboard over the last hour, the slowest first."""
    grafana = Grafana(
        f"http://{prometheus.address}",
        end=time.time() - 5,
        minutes=60,
        variables=CHOSEN,
        scrape_seconds=STEP_SECONDS,
    )
    models = grafana_dashboards(Scope(recorded=recorded)).values()
    costs = [
        asked(each, grafana)
        for model in models
        for each in questions(model)
        if each.kind != "values"
    ]
    if grafana.refused:
        raise RuntimeError("\n".join(grafana.refused))
    return sorted(costs, key=lambda cost: -cost.median)


def asked(question: Question, grafana: Grafana) -> Cost:
    """Ask one several times."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = question.answered(grafana)
        seconds.append(time.perf_counter() - start)
    return Cost(name=str(question), seconds=tuple(seconds), series=len(found))


def table(title: str, costs: Sequence[Cost], goal: float | None = None) -> Table:
    """Return costs as people read them."""
    shown = Table(title=title)
    shown.add_column("")
    for heading in ("median ms", "min", "max", "series"):
        shown.add_column(heading, justify="right")
    for cost in costs:
        colour = "red" if goal is not None and cost.median > goal else "default"
        shown.add_row(
            cost.name,
            f"[{colour}]{cost.median * 1e3:.0f}[/]",
            f"{min(cost.seconds) * 1e3:.0f}",
            f"{max(cost.seconds) * 1e3:.0f}",
            f"{cost.series:,}" if cost.series else "",
        )
    return shown


def memory(prometheus: Prometheus) -> int:
    """Return the bytes that Prometheus has resident."""
    pid = subprocess.run(
        ["pgrep", "-f", f"web.listen-address={prometheus.address}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()[-1]
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def main() -> int:
    """Print the tables and perhaps write them as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of 10,000")
    parser.add_argument("--rounds", type=int, default=7, help="evaluations")
    parser.add_argument("--slowest", type=int, default=15, help="queries to show")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="quotascope-rules-") as name,
        prepared(options.scale, Path(name)) as (prometheus, tape),
    ):
        STDERR.log("evaluating the rules")
        rules = evaluations(prometheus, options.rounds)
        STDERR.log("asking the dashboards' queries")
        plain = queries(prometheus, recorded=False)
        recorded = queries(prometheus, recorded=True)
        used = memory(prometheus)
    console = Console()
    total = sum(cost.median for cost in rules)
    console.print(table(f"{tape.series:,} series: rules, all {total:.2f} s", rules))
    for title, costs in (("as they are", plain), ("recorded", recorded)):
        slow = sum(cost.median > GOAL_SECONDS for cost in costs)
        heading = f"dashboards {title}: {slow} of {len(costs)} queries above 1 s"
        console.print(table(heading, costs[: options.slowest], GOAL_SECONDS))
    console.print(f"memory of Prometheus: {used / (1 << 30):.1f} GiB")
    if options.json:
        kinds = {"rules": rules, "queries": plain, "recorded": recorded}
        content = {
            kind: [asdict(each) for each in costs] for kind, costs in kinds.items()
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
