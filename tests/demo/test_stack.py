"""`make demo-stack`: the demo, a Prometheus with our rules, and the dashboards."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.ports import free_port
from tests.integration import web
from tests.integration.eventually import eventually, some

from quotascope.alerts import Site
from quotascope.alerts.files import rule_files
from quotascope.alerts.settings import Profile
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

ROOT = Path(__file__).parents[2]


@contextmanager
def stack(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start the stack as `make` does, with its temporary folder in this one."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.demo_stack", *options],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.real
@pytest.mark.slow
def test_the_stack_shows_life_and_leaves_nothing(tmp_path: Path) -> None:
    """The target is up, all rules are healthy, a panel has rows, the boards exist, and Ctrl-C ends every process."""
    port, prometheus = free_port(), free_port()
    options = "--port", f"{port}", "--prometheus-port", f"{prometheus}"
    api = f"http://127.0.0.1:{prometheus}/api/v1"

    def asked(path: str) -> Any:
        answer = web.ask(f"{api}/{path}")
        assert answer.status == 200, answer.text
        return json.loads(answer.body)["data"]

    with stack(tmp_path, *options) as process:
        assert process.stdout is not None
        tour = "".join(iter(process.stdout.readline, "Ctrl-C ends all, and removes the folder.\n"))
        (target,) = asked("targets")["activeTargets"]
        assert target["health"] == "up"
        rules = [rule for group in asked("rules")["groups"] for rule in group["rules"]]
        written = [
            rule
            for text in rule_files(Site(profile=Profile.ALL)).values()
            for group in yaml.safe_load(text)["groups"]
            for rule in group["rules"]
        ]
        assert len(rules) == len(written)
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
        table = 'topk(50, kafka_quota_throttle_time_seconds{cluster=~"demo"} > 0)'
        query = urllib.parse.urlencode({"query": table})
        eventually(lambda: some(asked(f"query?{query}")["result"]))
        baseline = "cluster:kafka_quota_request_throttled_seconds:rate5m offset 1h"
        assert asked(f"query?{urllib.parse.urlencode({'query': baseline})}")["result"]
        line = re.search(r"Dashboards: +(.+)", tour)
        assert line
        boards = {path.stem for path in Path(line[1]).glob("*.json")}
        assert boards == {*grafana_dashboards(Scope())}
        assert f"http://127.0.0.1:{port}/" in tour
        assert f"http://127.0.0.1:{prometheus}/" in tour
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert [*tmp_path.iterdir()] == []
    for used_port in (port, prometheus):
        with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
            probe.connect(("127.0.0.1", used_port))


@pytest.mark.real
@pytest.mark.parametrize("option", ["--port", "--prometheus-port"])
def test_a_busy_port_is_named(option: str, tmp_path: Path) -> None:
    """The stack prints one line with a remedy, and starts nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        ports = {"--port": str(free_port()), "--prometheus-port": str(free_port())}
        options = [word for pair in {**ports, option: port}.items() for word in pair]
        with stack(tmp_path, *options) as process:
            output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "")
    assert errors == (
        f"demo-stack: cannot listen on 127.0.0.1 port {port}: Address already in use;"
        f" choose another one: make demo-stack ARGS='{option} PORT'\n"
    )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.real
def test_a_port_that_cannot_be_is_named(tmp_path: Path) -> None:
    """An impossible port is named like a busy one."""
    with stack(tmp_path, "--port", "99999") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith("demo-stack: cannot listen on 127.0.0.1 port 99999: ")
