"""SIGHUP to a real `quotascope serve`, while it is scraped without a pause."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.cli.conftest import Serve
from tests.cli.test_serve import CAPTURE, QUOTASCOPE, get, line_with

COUNTERS = ("quotascope_samples_total", "quotascope_limits_refresh_errors_total")
SETTINGS = """
sources: [{sources}]
kafka: {{bootstrap_servers: "127.0.0.1:1", timeout_seconds: {timeout}, refresh_interval_seconds: 0.05}}
collection: {{max_age_seconds: 0, sample_every_seconds: {every}}}
log: {{format: json}}
"""


class Scrapes:
    """Scrapes again and again, and keeps all answers."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/metrics"
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.texts: list[str] = []
        self.errors: list[Exception] = []

    def _run(self) -> None:
        while not self._enough.is_set():
            try:
                self.texts.append(get(self._url))
            except Exception as error:  # noqa: BLE001 - each is a lost scrape
                self.errors.append(error)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def values(self, series: str) -> list[float]:
        """All values of a series, in order."""
        line = re.compile(rf"^{re.escape(series)} (\S+)$", re.MULTILINE)
        return [float(value) for text in self.texts for value in line.findall(text)]


class Service:
    """A process, its file and its URL."""

    def __init__(self, process: subprocess.Popen[str], file: Path, url: str) -> None:
        self.process = process
        self.url = url
        self._file = file

    def page(self) -> str:
        """What is reported from now on: a scrape that joins a collection under way may show what was before."""
        get(f"{self.url}/metrics")
        return get(f"{self.url}/metrics")

    def reload(self, text: str, answer: str) -> str:
        """Change the file, send the signal, and wait for the line with this text."""
        self._file.write_text(text)
        self.process.send_signal(signal.SIGHUP)
        return line_with(answer, self.process)


@contextmanager
def serving(file: Path) -> Iterator[Service]:
    """The exporter with this file, whose log format a flag overrides."""
    options = ("--address", "127.0.0.1", "--port", "0", "--log-format", "logfmt")
    with subprocess.Popen(
        [QUOTASCOPE, "serve", "--config", file, *options], env={**os.environ}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            found = re.search(r"url=(\S+)", line_with("listening", process))
            assert found is not None
            yield Service(process, file, found[1])
        finally:
            process.kill()


def test_reload_loses_no_scrape(agent: Serve, tmp_path: Path) -> None:
    """A new source appears, a mistake changes nothing but the metrics about it, counters never go back, flags stay in force."""
    first, second = agent(CAPTURE), agent("pair/throttled.2.jolokia2.json")
    a = f"{{name: a, node_id: 1, url: {first.url}}}"
    b = f"{{name: b, node_id: 2, url: {second.url}}}"
    file = tmp_path / "quotascope.yaml"
    file.write_text(SETTINGS.format(sources=a, timeout=5, every="50ms"))
    with serving(file) as service:
        line_with("ready", service.process)
        with Scrapes(service.url) as scrapes:
            good = SETTINGS.format(sources=f"{a}, {b}", timeout=4, every="20ms")
            changed = service.reload(good, "configuration was read again")
            bad = service.reload(good + "otlp: {timeout_seconds: soon}", "cannot be used")
            kept = service.page()
            service.reload(SETTINGS.format(sources=b, timeout=4, every="20ms"), "was read again")
            last = service.page()
        service.process.send_signal(signal.SIGTERM)
        service.process.communicate()
    assert scrapes.errors == []
    assert service.process.returncode == 0
    wanted = 'changed="sources, kafka.timeout_seconds, collection.sample_every_seconds"'
    assert wanted in changed
    assert "level=error" in bad
    assert f"file={file}" in bad
    assert "line 6: otlp.timeout_seconds is not a time such as 500ms, 5s or 1m" in bad
    assert "quotascope_config_last_reload_successful 0.0" in kept
    for source in "ab":
        assert f'quotascope_source_up{{source="{source}"}} 1.0' in kept
    assert "quotascope_config_last_reload_successful 1.0" in last
    assert 'source="a"' not in last
    for counter in COUNTERS:
        values = scrapes.values(counter)
        assert values == sorted(values)
    assert len(set(scrapes.values(COUNTERS[0]))) > 1


def test_files_with_secrets_are_read_again(agent: Serve, tmp_path: Path) -> None:
    """A token that was rotated is sent from then on; the log names its file, and never shows it."""
    broker = agent(CAPTURE)
    token = tmp_path / "token"
    token.write_text("Bearer old")
    file = tmp_path / "quotascope.yaml"
    source = f"{{url: {broker.url}, header_files: {{Authorization: {token}}}}}"
    text = f"sources: [{source}]\ncollection: {{max_age_seconds: 0}}\n"
    file.write_text(text)
    with serving(file) as service:
        get(f"{service.url}/metrics")
        assert set(broker.authorizations) == {"Bearer old"}
        token.write_text("Bearer new")
        line = service.reload(text, "configuration was read again")
        get(f"{service.url}/metrics")
    assert broker.authorizations[-1] == "Bearer new"
    assert f"changed={token}" in line
    assert "Bearer" not in line
