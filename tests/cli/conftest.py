"""Agents that answer as recorded."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog
from tests.exporter.recorded import jolokia_bytes

from quotascope.cli.main import main


class Agent:
    """Answers every POST with a capture, as Jolokia would."""

    def __init__(self, capture: str) -> None:
        answer = jolokia_bytes(capture)
        asked, go_on = threading.Event(), threading.Event()
        go_on.set()
        self.authorizations: list[str] = []
        """What the requests identified themselves with."""
        authorizations = self.authorizations
        self.asked = asked
        """Set by each request."""
        self.go_on = go_on
        """A request is answered when this is set."""

        class Jolokia(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                authorizations.append(self.headers.get("Authorization", ""))
                asked.set()
                go_on.wait()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Jolokia)
        self.url = f"http://127.0.0.1:{self._server.server_port}/jolokia"
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()

    def close(self) -> None:
        """Answer what is under way, and nothing more."""
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


Serve = Callable[[str], Agent]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: exit code, output, errors."""

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["quotascope", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        assert isinstance(code, int)
        return (code, *capsys.readouterr())

    return command


@pytest.fixture
def agent() -> Iterator[Serve]:
    """Starts agents, each with a capture."""
    agents: list[Agent] = []

    def serve(capture: str) -> Agent:
        agents.append(Agent(capture))
        return agents[-1]

    yield serve
    for each in agents:
        each.close()


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Leave logging as it was: commands that run in this process configure it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
