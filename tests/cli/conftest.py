"""Agents that answer as recorded, and commands in this process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer

import pytest
from tests.commands import exit_code, logging_kept
from tests.exporter.recorded import jolokia_bytes
from tests.servers import Handler


class Agent(ThreadingHTTPServer):
    """Answers every POST with a capture, as Jolokia would."""

    def __init__(self, capture: str) -> None:
        super().__init__(("127.0.0.1", 0), _Jolokia)
        self.url = f"http://127.0.0.1:{self.server_port}/jolokia"
        self.capture = jolokia_bytes(capture)
        self.authorizations: list[str] = []
        """What the requests identified themselves with."""
        self.asked = threading.Event()
        """Set by each request."""
        self.go_on = threading.Event()
        """A request is answered when this is set."""
        self.go_on.set()
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def close(self) -> None:
        """Answer what is under way, and nothing more."""
        self.go_on.set()
        self.shutdown()
        self.server_close()


class _Jolokia(Handler):
    server: Agent

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self.body()
        self.server.authorizations.append(self.headers.get("Authorization", ""))
        self.server.asked.set()
        self.server.go_on.wait()
        self.answer(200, self.server.capture)


Serve = Callable[[str], Agent]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: exit code, output, errors."""

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["quotascope", *map(str, arguments)])
        return (exit_code(), *capsys.readouterr())

    return command


@pytest.fixture
def agent() -> Iterator[Serve]:
    agents: list[Agent] = []

    def serve(capture: str) -> Agent:
        agents.append(Agent(capture))
        return agents[-1]

    yield serve
    for agent in agents:
        agent.close()


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    with logging_kept():
        yield
