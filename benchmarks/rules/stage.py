"""A real Prometheus that has seen an hour of a large cluster, and six hours of what predictions look back at."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from benchmarks.output import STDERR
from benchmarks.rules.fleet import Fleet
from benchmarks.rules.tape import PARTS, STEP_SECONDS, Player, Tape, playing
from tests.integration.prometheus import Prometheus

from quotascope.alerts import Site
from quotascope.alerts.files import rule_files
from quotascope.alerts.settings import Profile

CLUSTER: Final = "bench"
MINUTES: Final = 50
"""Minutes that are played: Prometheus takes nothing older than an hour."""
HISTORY_HOURS: Final = 5.2
PLAY_SECONDS: Final = 2
"""Between two minutes of the tape."""
REST_SECONDS: Final = 3600
"""Between two scrapes when queries are timed: nothing else is to happen."""
EVERY_SECONDS: Final = 60
"""Seconds between evaluations of rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A Prometheus, and what it does next."""

    folder: Path
    tape: Tape
    player: Player
    prometheus: Prometheus

    def evaluate_rules(self) -> None:
        """Scrape on, and evaluate all our rules equally often."""
        self.player.history = False
        self._be(_config(self._exporter, PLAY_SECONDS, *_write_rules(self.folder)))

    def rest(self) -> None:
        """Stop playing, and only answer."""
        self._be(_config(self._exporter, REST_SECONDS))

    def measured(self, name: str) -> float:
        """Return a number that Prometheus reports of itself, such as ``process_cpu_seconds_total``."""
        address = f"http://{self.prometheus.address}/metrics"
        command = ["curl", "-sf", address]
        page = subprocess.run(command, check=True, capture_output=True, text=True)
        lines = page.stdout.splitlines()
        return float(next(line for line in lines if line.startswith(name)).split()[1])

    @property
    def _exporter(self) -> str:
        return f"127.0.0.1:{self.player.server_port}"

    def _be(self, config: Mapping[str, Any]) -> None:
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(dict(config)))
        address = f"http://{self.prometheus.address}/-/reload"
        subprocess.run(["curl", "-sf", "-X", "POST", address], check=True)


@contextmanager
def prepared(scale: float, folder: Path) -> Iterator[Stage]:
    """Run a Prometheus that has seen the whole tape, for the length of a `with` block."""
    tape = Tape(Fleet(scale), time.time() - 60 * MINUTES)
    STDERR.log(f"{tape.series:,} series; writing {HISTORY_HOURS} hours of history")
    put_history(tape, folder)
    with playing(tape) as player:
        config = _config(f"127.0.0.1:{player.server_port}", PLAY_SECONDS)
        with running(folder, config) as prometheus:
            STDERR.log(f"playing {MINUTES} minutes")
            wait_until(lambda: tape.behind < STEP_SECONDS, 60 * MINUTES)
            yield Stage(folder=folder, tape=tape, player=player, prometheus=prometheus)


def put_history(tape: Tape, folder: Path) -> None:
    """Make blocks of what rules recorded before the tape begins."""
    text = folder / "history.txt"
    with text.open("wb") as file:
        file.writelines(tape.earlier(HISTORY_HOURS, CLUSTER))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*command, str(text), str(folder / "data")], check=True, capture_output=True)
    text.unlink()


@contextmanager
def running(folder: Path, config: Mapping[str, Any]) -> Iterator[Prometheus]:
    """Run a Prometheus that reads its configuration again on request."""
    prometheus = Prometheus(folder, config, "--web.enable-lifecycle")
    try:
        wait_until(lambda: ready(prometheus), 120)
        yield prometheus
    finally:
        prometheus.child.end(60)


def ready(prometheus: Prometheus) -> bool:
    """Return whether Prometheus answers."""
    try:
        return bool(prometheus.get("status/buildinfo"))
    except AssertionError:
        return False


def wait_until(is_done: Callable[[], bool], seconds: float) -> None:
    """Wait for something to come true."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError("Prometheus takes too long")
        time.sleep(0.5)


def _config(address: str, scrape_seconds: int, *rules: Path) -> dict[str, Any]:
    """Return the configuration of Prometheus; the parts of the page look like one exporter."""
    return {
        "global": {
            "scrape_interval": f"{scrape_seconds}s",
            "scrape_timeout": f"{min(scrape_seconds, 10)}s",
            "evaluation_interval": f"{EVERY_SECONDS}s",
        },
        "rule_files": [str(rule_file) for rule_file in rules],
        "scrape_configs": [
            {
                "job_name": "quotascope",
                "static_configs": [_part(address, part) for part in range(PARTS)],
                "metric_relabel_configs": _without_target(),
            }
        ],
    }


def _part(address: str, part: int) -> dict[str, Any]:
    labels = {
        "__metrics_path__": f"/{part}",
        "instance": "exporter:9840",
        "cluster": CLUSTER,
    }
    return {"targets": [address], "labels": labels}


def _without_target() -> Sequence[Mapping[str, Any]]:
    """Return the recorded series, which have no target."""
    rule = {"source_labels": ["__name__"], "regex": ".+:.+", "replacement": ""}
    return [{**rule, "target_label": label} for label in ("job", "instance")]


def _write_rules(folder: Path) -> Iterator[Path]:
    """Write our rules, all evaluated equally often."""
    for name in ("quotascope-recording.yaml", "quotascope-alerts.yaml"):
        rules = yaml.safe_load(rule_files(Site(profile=Profile.ALL))[name])
        for group in rules["groups"]:
            group.pop("interval", None)
        (folder / name).write_text(yaml.safe_dump(rules))
        yield folder / name
