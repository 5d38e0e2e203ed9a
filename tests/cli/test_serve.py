"""`quotascope serve` as a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.cli.conftest import Serve

from quotascope.cli.compose import build_exporter
from quotascope.cli.serve import run_until_signal
from quotascope.exporter.config import Config

CAPTURE = "combined/throttled.jolokia2.json"
SERIES = "kafka_quota_produce_bytes_per_second{"
QUOTASCOPE = Path(sys.executable).with_name("quotascope")


@contextmanager
def serving(source: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The exporter on a free port, and its URL; ended at the end whatever happens."""
    options = ("--web.listen-address", "127.0.0.1:0", "--log-format", "logfmt")
    with subprocess.Popen(
        [QUOTASCOPE, "serve", "--source", source, *options],
        env={**os.environ, "QUOTASCOPE_COLLECTION__MAX_AGE_SECONDS": "0"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process, _url(process)
        finally:
            process.kill()


def _url(process: subprocess.Popen[str]) -> str:
    found = re.search(r"url=(\S+)", line_with("listening", process))
    assert found is not None
    return found[1]


def line_with(text: str, process: subprocess.Popen[str]) -> str:
    """The next log line that holds a text."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    return pytest.fail(f"no line with {text}")


def get(url: str) -> str:
    """The text at a URL."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own
        text: str = answer.read().decode()
        return text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_in_good_order(agent: Serve, number: signal.Signals) -> None:
    """It serves until it is asked to stop; then it ends with exit code 0 and no traceback."""
    with serving(agent(CAPTURE).url) as (process, url):
        assert SERIES in get(f"{url}/metrics")
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "stopping" in errors.splitlines()[-1]


async def test_second_signal_is_left_to_the_system(agent: Serve) -> None:
    """The first signal asks; the next one meets no handler of ours and ends the process at once."""
    config = Config.model_validate(
        {
            "server": {"address": "127.0.0.1", "port": 0},
            "sources": [{"dialect": "jolokia", "url": agent(CAPTURE).url}],
        }
    )
    before = signal.getsignal(signal.SIGTERM)
    with capture_logs() as lines:
        running = asyncio.create_task(run_until_signal(*build_exporter(config)))
        while signal.getsignal(signal.SIGTERM) is before:  # noqa: ASYNC110 - until it listens to signals
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert signal.getsignal(signal.SIGTERM) is before
    assert any(line["event"].startswith("stopping") for line in lines)


def test_scrape_under_way_is_answered_after_the_signal(agent: Serve) -> None:
    """A scrape that reached a broker before SIGTERM still gets its numbers."""
    broker = agent(CAPTURE)
    with serving(broker.url) as (process, url):
        line_with("ready", process)
        broker.asked.clear()
        broker.go_on.clear()
        with ThreadPoolExecutor() as threads:
            scrape = threads.submit(get, f"{url}/metrics")
            broker.asked.wait()
            process.send_signal(signal.SIGTERM)
            line_with("stopping", process)
            broker.go_on.set()
            assert SERIES in scrape.result()
        assert process.wait() == 0


def test_port_in_use() -> None:
    """A second exporter on the port of the first says so, and ends with exit code 1."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [
                QUOTASCOPE,
                "serve",
                "--address",
                "127.0.0.1",
                "--port",
                str(port),
                "--source",
                "http://127.0.0.1:1",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (f"quotascope: cannot listen on 127.0.0.1 port {port}: Address already in use\n")
