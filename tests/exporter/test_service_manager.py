from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from quotascope.exporter.service_manager import READY, tell


@contextmanager
def manager(address: str) -> Iterator[socket.socket]:
    """A service manager that listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        listening.settimeout(5)
        yield listening


def test_state_is_told_to_the_socket(tmp_path: Path) -> None:
    """The manager gets one datagram with the state, at the path that it gave."""
    path = str(tmp_path / "notify")
    with manager(path) as listening:
        tell(READY, {"NOTIFY_SOCKET": path})
        assert listening.recv(100) == b"READY=1"


def test_state_is_told_to_a_socket_without_a_file(tmp_path: Path) -> None:
    """An address that begins with @ is an abstract one, as containers have it."""
    name = f"quotascope{tmp_path}"
    with manager(f"\0{name}") as listening:
        tell(READY, {"NOTIFY_SOCKET": f"@{name}"})
        assert listening.recv(100) == b"READY=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_nothing_is_told_to_nobody(environ: dict[str, str]) -> None:
    """Without a socket, or with one of another kind, nothing happens and nothing is said."""
    with capture_logs() as lines:
        tell(READY, environ)
    assert lines == []


def test_manager_that_is_gone_costs_a_line(tmp_path: Path) -> None:
    """The exporter works on when nobody listens any more."""
    with capture_logs() as lines:
        tell(READY, {"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    assert [line["event"] for line in lines] == ["the service manager cannot be told"]
