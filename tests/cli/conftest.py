"""Agents that answer as recorded, and commands in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
from tests.builders.agents import Agent
from tests.commands import exit_code, logging_kept
from tests.exporter.recorded import jolokia_bytes

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
        agents.append(Agent(jolokia_bytes(capture)))
        return agents[-1]

    yield serve
    for agent in agents:
        agent.close()


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    with logging_kept():
        yield
