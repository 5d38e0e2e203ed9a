"""`quotascope serve` as a process of its own: how it ends, and what SIGHUP changes while it is scraped without a pause; and how single reads wait."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.cli.conftest import Serve
from tests.commands import COMMAND
from tests.exporter.examples import ScriptedLimits, ScriptedSource
from tests.integration.eventually import again_and_again

from quotascope.cli import compose
from quotascope.cli.compose import build_exporter
from quotascope.cli.serve import run_until_signal
from quotascope.exporter.app import Parts
from quotascope.exporter.collection.reads import Reads
from quotascope.exporter.config import Config

CAPTURE = "combined/throttled.jolokia2.json"
SERIES = "kafka_quota_produce_bytes_per_second{"
COUNTERS = ("quotascope_samples_total", "quotascope_limits_refresh_errors_total")
SETTINGS = """
sources: [{sources}]
kafka: {{bootstrap_servers: "127.0.0.1:1", timeout_seconds: {timeout}, refresh_interval_seconds: 0.05}}
collection: {{max_age_seconds: 0, sample_every_seconds: {every}}}
log: {{format: json}}
"""


class Service:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        found = re.search(r"url=(\S+)", self.line_with("listening"))
        assert found is not None
        self._metrics = f"{found[1]}/metrics"

    def line_with(self, text: str) -> str:
        """The next log line that holds a text."""
        assert self.process.stderr is not None
        return next((line for line in self.process.stderr if text in line), None) or pytest.fail(f"no line with {text}")

    def scraped(self) -> str:
        with urllib.request.urlopen(self._metrics) as answer:  # noqa: S310 - our own
            return str(answer.read().decode())

    def reload(self, file: Path, text: str, answer: str) -> str:
        """Change the file, send the signal, and wait for the line with this text."""
        file.write_text(text)
        self.process.send_signal(signal.SIGHUP)
        return self.line_with(answer)


@contextmanager
def serving(*options: str | Path) -> Iterator[Service]:
    """The exporter on a free port; ended at the end whatever happens."""
    command = (COMMAND, "serve", "--web.listen-address", "127.0.0.1:0", "--log-format", "logfmt", *options)
    environ = {**os.environ, "QUOTASCOPE_COLLECTION__MAX_AGE_SECONDS": "0"}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Service(process)
        finally:
            process.kill()


def test_signal_ends_it_in_good_order(agent: Serve) -> None:
    """It serves until it is asked to stop, as by Ctrl-C; then it ends with exit code 0 and no traceback."""
    with serving("--source", agent(CAPTURE).url) as service:
        assert SERIES in service.scraped()
        service.process.send_signal(signal.SIGINT)
        _, errors = service.process.communicate()
    assert service.process.returncode == 0
    assert "Traceback" not in errors
    assert "stopping" in errors


async def test_second_signal_is_left_to_the_system(agent: Serve) -> None:
    """The first signal asks; the next one meets no handler of ours and ends the process at once."""
    source = {"dialect": "jolokia", "url": agent(CAPTURE).url}
    config = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0}, "sources": [source]})
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
    with serving("--source", broker.url) as service:
        service.line_with("ready")
        broker.asked.clear()
        broker.go_on.clear()
        with ThreadPoolExecutor() as threads:
            scrape = threads.submit(service.scraped)
            broker.asked.wait()
            service.process.send_signal(signal.SIGTERM)
            service.line_with("stopping")
            broker.go_on.set()
            assert SERIES in scrape.result()
        assert service.process.wait() == 0


def test_port_in_use() -> None:
    """A second exporter on the port of the first says so, and ends with exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = (COMMAND, "serve", "--address", "127.0.0.1", "--port", f"{port}", "--source", "http://127.0.0.1:1")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = f"quotascope: cannot listen on 127.0.0.1 port {port}: Address already in use\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


def test_reload_loses_no_scrape(agent: Serve, tmp_path: Path) -> None:
    """A new source appears, a mistake changes nothing but the metrics about it, counters never go back, flags stay in force."""
    first, second = agent(CAPTURE), agent("pair/throttled.2.jolokia2.json")
    a, b = f"{{name: a, node_id: 1, url: {first.url}}}", f"{{name: b, node_id: 2, url: {second.url}}}"
    file = tmp_path / "quotascope.yaml"
    file.write_text(SETTINGS.format(sources=a, timeout=5, every="50ms"))
    with serving("--config", file) as service:

        def page() -> str:
            service.scraped()  # a scrape that joins a collection under way may show what was before
            return service.scraped()

        service.line_with("ready")
        with again_and_again(service.scraped) as texts:
            good = SETTINGS.format(sources=f"{a}, {b}", timeout=4, every="20ms")
            changed = service.reload(file, good, "configuration was read again")
            bad = service.reload(file, good + "otlp: {timeout_seconds: soon}", "cannot be used")
            kept = page()
            service.reload(file, SETTINGS.format(sources=b, timeout=4, every="20ms"), "was read again")
            last = page()
        service.process.send_signal(signal.SIGTERM)
        service.process.communicate()
    assert service.process.returncode == 0
    assert 'changed="sources, kafka.timeout_seconds, collection.sample_every_seconds"' in changed
    mistake = "line 6: otlp.timeout_seconds is not a time such as 500ms, 5s or 1m"
    assert [part for part in ("level=error", f"file={file}", mistake) if part not in bad] == []
    assert "quotascope_config_last_reload_successful 0.0" in kept
    for source in "ab":
        assert f'quotascope_source_up{{source="{source}"}} 1.0' in kept
    assert "quotascope_config_last_reload_successful 1.0" in last
    assert 'source="a"' not in last
    for counter in COUNTERS:
        line = re.compile(rf"^{counter} (\S+)$", re.MULTILINE)
        values = [float(value) for text in texts for value in line.findall(text)]
        assert values == sorted(values)
        assert counter != COUNTERS[0] or len(set(values)) > 1


def test_files_with_secrets_are_read_again(agent: Serve, tmp_path: Path) -> None:
    """A token that was rotated is sent from then on; the log names its file, and never shows it."""
    broker = agent(CAPTURE)
    token, file = tmp_path / "token", tmp_path / "quotascope.yaml"
    token.write_text("Bearer old")
    text = f"sources: [{{url: {broker.url}, header_files: {{Authorization: {token}}}}}]\n"
    file.write_text(text)
    with serving("--config", file) as service:
        service.scraped()
        assert set(broker.authorizations) == {"Bearer old"}
        token.write_text("Bearer new")
        line = service.reload(file, text, "configuration was read again")
        service.scraped()
    assert broker.authorizations[-1] == "Bearer new"
    assert f"changed={token}" in line
    assert "Bearer" not in line


SOURCES = [{"url": "http://broker-1:8778/jolokia"}]


def build(monkeypatch: pytest.MonkeyPatch, limits: ScriptedLimits | None = None) -> None:
    """Let every configuration have a source that the test writes, and these limits."""
    monkeypatch.setattr(
        compose, "build_parts", lambda now, **_: Parts(loaded=now, sources=(ScriptedSource(),), limits=limits)
    )


@pytest.mark.parametrize(("watch", "waits"), [(False, 8.0), (True, 4.0)])
async def test_single_look_waits_for_a_source_as_long_as_it_may(
    monkeypatch: pytest.MonkeyPatch, *, watch: bool, waits: float
) -> None:
    """Those who look again and again find a late answer in the next one."""
    waited: list[float] = []

    def begin(self: Reads, sources: list[ScriptedSource], patience: float) -> None:
        waited.append(patience)
        begun(self, sources, patience)

    begun = Reads.begin
    monkeypatch.setattr(Reads, "begin", begin)
    build(monkeypatch)
    config = Config.model_validate({"collection": {"timeout_seconds": 8}, "sources": SOURCES})
    async with compose.build_collection(config, watch=watch) as collection:
        (source,) = (await collection.snapshot(8)).sources
    assert source.up
    assert waited == [waits]


async def test_the_first_of_many_looks_waits_for_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first screen without limits would look like a cluster that has none."""
    limits = ScriptedLimits()
    limits.answers.clear()
    build(monkeypatch, limits)
    config = Config.model_validate({"kafka": {"bootstrap_servers": "a:9092"}, "sources": SOURCES})
    async with compose.build_collection(config, watch=True) as collection:
        first = asyncio.create_task(collection.snapshot(60))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not first.done()
        limits.answers.set()
        assert (await first).limits is not None
