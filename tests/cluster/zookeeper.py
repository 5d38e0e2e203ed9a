"""A ZooKeeper process, for brokers that have no quorum of their own."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from . import provision
from .ports import free_port

_SECONDS: Final = 30


class ZooKeeperError(Exception):
    """ZooKeeper did not start; the message ends with its log."""


class ZooKeeper:
    """
    The ZooKeeper of a release's jars, alone and in memory as far as tests can tell.

    Its process ends when the process that started it ends, however that happens.
    """

    def __init__(self, version: str, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._version = version
        self._folder = folder
        self._log = folder / "zookeeper.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start ZooKeeper, and wait until it accepts connections. Raises `ZooKeeperError`."""
        self._folder.mkdir(parents=True)
        agents = self._folder / "agents"
        agents.write_text("")
        command = [
            "java",
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dzookeeper.admin.enableServer=false",
            "-Dzookeeper.maxClientCnxns=0",
            f"-javaagent:{provision.agents()}/agent-loader.jar={agents}",
            "-cp",
            f"{provision.release_libs(self._version)}/*",
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(self.port),
            str(self._folder / "data"),
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + _SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ZooKeeperError(
                    f"ZooKeeper of Kafka {self._version}:\n{self._log.read_text(errors='replace')[-4000:]}"
                )
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True
