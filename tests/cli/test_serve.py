"""`quotascope serve` as a process: its end, SIGHUP under constant scrapes, and the waits of single reads."""

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
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.cli.conftest import Serve
from tests.cluster.ports import free_port
from tests.commands import COMMAND
from tests.exporter.examples import ScriptedLimits, ScriptedSource
from tests.integration.eventually import again_and_again, eventually

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
        address = re.search(r"url=(\S+)", self.line_with("listening"))
        assert address is not None
        self._metrics = f"{address[1]}/metrics"

    def line_with(self, text: str) -> str:
        """The next log line that holds a text."""
        assert self.process.stderr is not None
        return next((line for line in self.process.stderr if text in line), None) or pytest.fail(f"no line with {text}")

    def scraped(self) -> str:
        return _get(self._metrics)

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
    """The exporter serves until a signal stops it; then it ends with exit code 0 and no traceback."""
    with serving("--source", agent(CAPTURE).url) as service:
        assert SERIES in service.scraped()
        service.process.send_signal(signal.SIGINT)
        _, errors = service.process.communicate()
    assert service.process.returncode == 0
    assert "Traceback" not in errors
    assert "stopping" in errors


async def test_second_signal_is_left_to_the_system(agent: Serve) -> None:
    """The first signal asks the exporter to end, and a second one ends the process at once."""
    source = {"dialect": "jolokia", "url": agent(CAPTURE).url}
    config = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0}, "sources": [source]})
    handler = signal.getsignal(signal.SIGTERM)
    with capture_logs() as lines:
        running = asyncio.create_task(run_until_signal(*build_exporter(config)))
        while signal.getsignal(signal.SIGTERM) is handler:  # noqa: ASYNC110 - until it listens to signals
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert signal.getsignal(signal.SIGTERM) is handler
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
    """A new source appears, a mistake changes only metrics about it, counters never go back, flags stay."""
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
            old_page = page()
            service.reload(file, SETTINGS.format(sources=b, timeout=4, every="20ms"), "was read again")
            new_page = page()
        service.process.send_signal(signal.SIGTERM)
        service.process.communicate()
    assert service.process.returncode == 0
    assert 'changed="sources, kafka.timeout_seconds, collection.sample_every_seconds"' in changed
    mistake = "line 6: otlp.timeout_seconds is not a time such as 500ms, 5s or 1m"
    assert [part for part in ("level=error", f"file={file}", mistake) if part not in bad] == []
    assert "quotascope_config_last_reload_successful 0.0" in old_page
    for source in "ab":
        assert f'quotascope_source_up{{source="{source}"}} 1.0' in old_page
    assert "quotascope_config_last_reload_successful 1.0" in new_page
    assert 'source="a"' not in new_page
    for counter in COUNTERS:
        line = re.compile(rf"^{counter} (\S+)$", re.MULTILINE)
        values = [float(value) for text in texts for value in line.findall(text)]
        assert values == sorted(values)
        assert counter != COUNTERS[0] or len(set(values)) > 1


def test_files_with_secrets_are_read_again(agent: Serve, tmp_path: Path) -> None:
    """A rotated token is sent from then on; the log names its file and never shows the token."""
    broker = agent(CAPTURE)
    token, file = tmp_path / "token", tmp_path / "quotascope.yaml"
    token.write_text("Bearer old")
    text = f"sources: [{{url: {broker.url}, header_files: {{Authorization: {token}}}}}]\n"
    file.write_text(text)
    with serving("--config", file) as service:
        service.scraped()
        assert set(broker.authorizations) == {"Bearer old"}
        token.write_text("Bearer new")
        line = service.reload(file, text, f"changed={token}")
        service.scraped()
    assert broker.authorizations[-1] == "Bearer new"
    assert f"changed={token}" in line
    assert "Bearer" not in line


def test_rotated_files_are_followed(agent: Serve, tmp_path: Path) -> None:
    """A rotated token is sent within seconds without a signal, as in a pod, and without a reload."""
    broker = agent(CAPTURE)
    token, file = tmp_path / "token", tmp_path / "quotascope.yaml"
    token.write_text("Bearer old")
    file.write_text(f"sources: [{{url: {broker.url}, header_files: {{Authorization: {token}}}}}]\n")
    with serving("--config", file) as service:
        service.scraped()
        file.write_text("nonsense: [")
        token.write_text("Bearer new")
        line = service.line_with("files of the configuration were read again")
        service.scraped()
    assert broker.authorizations[-1] == "Bearer new"
    assert f"changed={token}" in line
    assert "Bearer" not in line


def full_pipe() -> tuple[int, int]:
    """Yield a full pipe without a reader."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.set_blocking(writer, True)
    return reader, writer


def test_a_log_that_is_not_read_stops_no_scrape(agent: Serve) -> None:
    """The exporter starts, answers and ends while not a line of its log can be written."""
    port, (reader, writer) = free_port(), full_pipe()
    command = (COMMAND, "serve", "--web.listen-address", f"127.0.0.1:{port}", "--source", agent(CAPTURE).url)
    try:
        with subprocess.Popen(command, stderr=writer) as process:
            try:
                page = eventually(lambda: _answered(f"http://127.0.0.1:{port}/metrics"), seconds=60)
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 0
            finally:
                process.kill()
    finally:
        os.close(reader)
        os.close(writer)
    assert SERIES in page


def _answered(url: str) -> str:
    try:
        return _get(url)
    except OSError as error:
        raise AssertionError(url) from error


def _get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own
        return str(answer.read().decode())


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
    """A single look waits for a late source as long as permitted; a repeated one shows the answer in the next look."""
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
    """The first look waits for the limits, or its screen would look like a cluster without limits."""
    limits = ScriptedLimits()
    limits.answers.clear()
    build(monkeypatch, limits)
    config = Config.model_validate({"kafka": {"bootstrap_servers": "a:9092"}, "sources": SOURCES})
    async with compose.build_collection(config, watch=True) as collection:
        request = asyncio.create_task(collection.snapshot(60))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not request.done()
        limits.answers.set()
        assert (await request).limits is not None
