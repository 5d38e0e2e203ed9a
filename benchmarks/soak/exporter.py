"""The exporter as a user has it: installed from the last commit, started by its command with a configuration file."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import yaml
from benchmarks.soak.agents import AgentPlan
from tests.integration.child import Child

ROOT: Final = Path(__file__).parents[2]
SCRAPER_TIMEOUTS: Final = (20.0, 16.0)
"""Less the margin, the second one waits less long than a source may take, so that its deadline decides."""
MARGIN_SECONDS: Final = 6.0
"""Long, as the two timeouts are: the machine may be busy with other work."""
FOUND_TIMEOUT_SECONDS: Final = 12.0
"""Timeout of sources from files."""
LISTED_TIMEOUT_SECONDS: Final = 4.0
EXPECTED: Final = frozenset(
    {
        "the configuration cannot be used, the previous one stays in force",
        "source is down",
        "requests for another host were refused",
        "limits cannot be read",
        "cannot be read",
        "not everything was found",
        "discovery fails",
        "metrics cannot be pushed",
    }
)


class Planted(StrEnum):
    """A defect that a run has to find."""

    NOTHING = "nothing"
    LEAK = "leak"
    LOST = "lost"


def install(folder: Path) -> str:
    """Install the last commit, without what it depends on, into a folder. Returns the commit."""
    commit = _output("git", "rev-parse", "--short", "HEAD")
    source = folder / "source"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-qq",
        "--no-deps",
        "--disable-pip-version-check",
    ]
    target = ["--target", str(folder / "installed")]
    # plain Python: compiling the engine takes minutes, and the exporter does not enforce
    pure = {**os.environ, "QUOTASCOPE_PURE": "1"}
    subprocess.run([*pip, *target, str(source)], check=True, env=pure)
    return commit


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip()


def configuration(
    listed: Sequence[AgentPlan], files: Path, bootstrap: str, agent_port: int, push: int
) -> dict[str, Any]:
    """Return the content of the configuration file."""
    return {
        "cluster": "soak",
        "sources": [
            {
                "name": agent.name,
                "url": url(agent),
                "timeout_seconds": LISTED_TIMEOUT_SECONDS,
            }
            for agent in listed
        ],
        "discovery": {
            "kafka": {"url": f"http://{{host}}:{agent_port}/jolokia"},
            "file_sd": {"files": [str(files)], "refresh_interval_seconds": 2},
            "source": {"timeout_seconds": FOUND_TIMEOUT_SECONDS},
        },
        "kafka": {
            "bootstrap_servers": bootstrap,
            "refresh_interval_seconds": 5,
            "timeout_seconds": 5,
        },
        "server": {"address": "127.0.0.1", "port": 0},
        "collection": {"margin_seconds": MARGIN_SECONDS, "sample_every_seconds": 2},
        "cardinality": {
            "max_entities": 400,
            "exclude_client_ids": ["console-.*"],
            "detail_above": 0.5,
            "idle_after_seconds": 60,
        },
        "otlp": {
            "endpoint": f"http://127.0.0.1:{push}",
            "interval_seconds": 7,
            "timeout_seconds": 4,
        },
        "log": {"format": "json"},
    }


def url(agent: AgentPlan) -> str:
    """Return the address of an agent."""
    path = "jolokia" if agent.dialect == "jolokia" else "metrics"
    return f"http://127.0.0.1:{agent.port}/{path}"


class Exporter:
    """The running process."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], planted: Planted) -> None:
        self.config = folder / "quotascope.yaml"
        self.configure(settings)
        command = [str(folder / "installed/bin/quotascope")]
        if planted is Planted.LEAK:
            command = [sys.executable, "-m", "benchmarks.soak.leaky"]
        self._log = folder / "quotascope.log"
        self._read = 0
        self.unexpected: list[str] = []
        self.child = Child(
            [*command, "serve", "--config", str(self.config)], self._log, _environment(folder / "installed")
        )
        self.url = ""

    @property
    def pid(self) -> int:
        """Id of its process."""
        return self.child.pid

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Write the configuration file, at once as editors do."""
        new = self.config.with_suffix(".new")
        new.write_text(yaml.safe_dump(dict(settings)))
        new.rename(self.config)

    def look(self) -> None:
        """Read on in the log: where it listens, and what was not to be expected."""
        self.child.must_run()
        with self._log.open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._look_at(line.decode(errors="replace"))

    def _look_at(self, line: str) -> None:
        entry = _json(line)
        if entry.get("msg") == "listening":
            self.url = str(entry["url"])
        if not is_expected(line):
            self.unexpected.append(line.strip())


def is_expected(line: str) -> bool:
    """Return whether a line of the log is about an action on the exporter, or no trouble at all."""
    entry = _json(line)
    if "exception" in entry or "level" not in entry:
        return False
    harmless = entry["level"] in {"info", "debug"} or "advice" in entry
    return harmless or entry.get("msg") in EXPECTED


def _json(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _environment(installed: Path) -> dict[str, str]:
    """Ours without settings of quotascope."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("QUOTASCOPE_", "OTEL_"))}
    return {**variables, "PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"}


@contextmanager
def serving(folder: Path, settings: Mapping[str, Any], planted: Planted) -> Iterator[Exporter]:
    """Yield a running exporter."""
    exporter = Exporter(folder, settings, planted)
    try:
        yield exporter
    finally:
        exporter.child.end()
