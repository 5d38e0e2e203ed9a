"""`quotascope demo` as a user starts it: a process of its own, needing only Python."""

import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.conftest import Run
from tests.cli.ptys import PLAIN, terminal
from tests.commands import COMMAND

PATIENCE_SECONDS = 30.0
"""Only a hanging process takes so long."""


@contextmanager
def started(*options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The demo with its output in a pipe; ended at the end whatever happens."""
    environ, pipe = {**PLAIN, **environment}, subprocess.PIPE
    with subprocess.Popen([COMMAND, "demo", *options], env=environ, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def url_in(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        url = re.search(r"http://\S+", line)
        if url:
            return url[0]
    pytest.fail("the demo printed no address")


def throttled(metrics: str) -> set[str]:
    """The quota types under which an entity was throttled."""
    pattern = r'^kafka_quota_throttle_time_seconds\{.*quota_type="(\w+)".*\} (\S+)$'
    values = re.findall(pattern, metrics, re.MULTILINE)
    return {quota_type for quota_type, seconds in values if float(seconds) > 0}


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - our own
        return str(answer.read().decode())


@pytest.mark.slow
def test_throttled_clients() -> None:
    """The demo prints its address, serves throttled entities there, and prints them as plain text when it ends."""
    with started() as process:
        address = url_in(process)
        assert "Too many clients are throttled for an alert each." in get(f"{address}runbooks/"), "with summaries"
        url = f"{address}metrics"
        deadline = time.monotonic() + PATIENCE_SECONDS
        metrics = get(url)
        while not throttled(metrics) and time.monotonic() < deadline:
            assert process.poll() is None, "it ended before any client was throttled"
            time.sleep(0.1)
            metrics = get(url)
        assert throttled(metrics)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert errors == ""
    assert 'kafka_quota_rule_info{client_id="spark-nightly",level="user_client"' in metrics
    assert re.search(r"^etl / spark-nightly +produce .* 1 etl / spark-nightly", output, re.MULTILINE)
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) <= 100
    assert re.fullmatch(r"The demo ended after \d+ s\. .*", output.splitlines()[-1])


def test_ends_on_a_signal() -> None:
    """SIGTERM and Ctrl-C in the terminal end the demo in the ordinary way."""
    with started() as process:
        url_in(process)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[-1].startswith("The demo ended after")


def test_port_in_use(run: Run) -> None:
    """A port that is taken is one clear line and exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output, errors = run("demo", "--port", port)
    assert (code, output) == (1, "")
    assert re.fullmatch(rf"quotascope: cannot listen on 127\.0\.0\.1 port {port}: .*\n", errors)


def test_reader_goes_away() -> None:
    """The demo ends without a message if its pipe is no longer read."""
    with started("--duration", "0") as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, errors) == (1, "")


def test_in_ascii() -> None:
    """The demo ends by itself; an output that takes only ASCII gets a table all the same."""
    with started("--duration", "1", PYTHONIOENCODING="ascii") as process:
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert output.isascii()
    assert re.search(r"entity .*rule ", output)


def test_in_a_terminal() -> None:
    """The demo takes the whole screen of a terminal, draws in place, and leaves the last table behind."""
    with terminal(COMMAND, "demo") as screen:
        screen.frame_with("spark-nightly")
        screen.program.send_signal(signal.SIGINT)
        screen.frame_with("topics refused: ")
        assert screen.program.wait(PATIENCE_SECONDS) == 0
        screens, remainder = screen.said.split("\x1b[?1049l")
    assert "/metrics" in screens
    assert not re.search(r"\x1b\[[0-9]*[JK]", screens), "erasing flickers"
    assert re.search(r"entity .*rule ", remainder)
