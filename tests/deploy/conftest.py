"""An exporter as a service manager runs it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cluster.ports import free_port
from tests.integration.child import Child

from quotascope.exporter.process import ALIVE

COMMAND = Path(sys.executable).with_name("quotascope")


class Service:
    def __init__(self, folder: Path) -> None:
        port = free_port()
        settings = {
            "sources": [{"url": f"http://127.0.0.1:{free_port()}/jolokia"}],
            "server": {"address": "127.0.0.1", "port": port},
        }
        config = folder / "quotascope.yaml"
        config.write_text(yaml.safe_dump(settings))
        self.alive = 0
        """How often it has reported so far that it is alive."""
        self.url = f"http://127.0.0.1:{port}"
        self._manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._manager.bind(str(folder / "notify"))
        self._manager.settimeout(150)
        self.child = Child(
            [str(COMMAND), "serve", "--config", str(config)],
            folder / "quotascope.log",
            {**os.environ, "NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "1000000"},
        )

    def reported(self) -> str:
        """Return the next report to its manager, other than that it is alive."""
        while (text := self._manager.recv(100).decode()) == ALIVE:
            self.alive += 1
        return text

    def close(self) -> None:
        self.child.end()
        self._manager.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Yield an exporter whose only broker is down, and that is ready."""
    running = Service(tmp_path)
    try:
        assert running.reported() == "READY=1"
        yield running
    finally:
        running.close()
