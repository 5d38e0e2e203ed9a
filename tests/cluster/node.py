"""One Kafka process."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from . import provision
from .agents import Agents
from .users import scram_records

CLUSTER_ID: Final = "cXVvdGFzY29wZS10ZXN0cw"
LOG_CONFIG: Final = Path(__file__).parent / "log4j2.properties"
REQUEST_LOG_CONFIG: Final = Path(__file__).parent / "log4j2-requests.properties"
READY: Final = "Kafka Server started"
SMALL_JVM: Final = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class NodeError(Exception):
    """A node did not start; the message ends with its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Which Kafka runs in a node."""

    classes: Path | None = None
    """A folder of further classes on its class path."""
    newest: bool = False
    """The newest release that can be fetched, instead of the one whose tools can be fetched as well."""
    logs_requests: bool = False
    """Whether every answered request is a line in `Node.request_log`."""
    jvm: tuple[str, ...] = ()
    """Further options of its JVM."""


class Node:
    """
    A KRaft node that is started, stopped, killed and started again, on the same ports and with the same data.

    Its process ends when the process that started it ends, however that happens.
    """

    def __init__(
        self, node_id: int, folder: Path, properties: Mapping[str, str], agents: Agents, program: Program | None = None
    ) -> None:
        self.node_id = node_id
        self.agents = agents
        self.log = folder / "kafka.log"
        self.request_log = folder / "requests.log"
        self._folder = folder
        self._properties = {**properties, **agents.properties()}
        self._program = program or Program()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The id of the process, or None when it was not started or has been stopped."""
        return None if self._process is None else self._process.pid

    def use_rules(self, rules: str) -> None:
        """Let the agent at `agents.other_rules` read these from now on."""
        self.agents.use_rules(self._folder, rules)

    def format(self) -> None:
        """Write the configuration and an empty metadata log that knows the SCRAM users. Raises `NodeError`."""
        self._configure()
        words = ("format", "-t", CLUSTER_ID, "-c", str(self._config), *scram_records())
        command = java("kafka.tools.StorageTool", *words, program=replace(self._program, logs_requests=False))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NodeError(f"node {self.node_id} could not be formatted:\n{done.stdout}{done.stderr}")

    def format_like(self, other: "Node") -> None:
        """The same as a copy of another node that was formatted and not yet started: saves a JVM."""
        self._configure()
        shutil.copytree(other._data, self._data)
        lines = (self._data / "meta.properties").read_text().splitlines()
        own = {"node.id": self.node_id, "directory.id": uuid.uuid4().hex[:22]}
        kept = [line for line in lines if line.partition("=")[0] not in own]
        lines = [*kept, *(f"{key}={value}" for key, value in own.items())]
        (self._data / "meta.properties").write_text("\n".join(lines))

    def _configure(self) -> None:
        self._folder.mkdir(parents=True)
        text = "".join(f"{key}={value}\n" for key, value in self._properties.items())
        self._config.write_text(text.replace("\\", "\\\\"))

    def start(self) -> None:
        """Start the process, but do not wait for it."""
        command = java(
            self.agents.jvm_option(self._folder),
            f"-DrequestLog={self.request_log}",
            "kafka.Kafka",
            str(self._config),
            program=self._program,
        )
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)

    def wait_until_ready(self, seconds: float = 60) -> None:
        """Wait until the node serves. Raises `NodeError` when it ended or when the time is over."""
        deadline = time.monotonic() + seconds
        while READY not in self.log.read_text(errors="replace"):
            if not self.running or time.monotonic() > deadline:
                state = "is not ready" if self.running else "ended"
                raise NodeError(f"node {self.node_id} {state}:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Shut down in order; a node that takes more than 20 s over it is killed."""
        if self._process is None:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self.kill()

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._process = None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The process does not run, as in a very long garbage collection; the kernel goes on taking connections to it."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    @property
    def _data(self) -> Path:
        return Path(self._properties["log.dirs"])

    @property
    def _config(self) -> Path:
        return self._folder / "server.properties"


def java(*arguments: str, program: Program | None = None) -> list[str]:
    """The command line of a small JVM with Kafka, and maybe a folder of further classes, on its class path."""
    chosen = program or Program()
    libs = provision.newest_libs() if chosen.newest else provision.libs()
    more = "" if chosen.classes is None else f":{chosen.classes}"
    log_config = REQUEST_LOG_CONFIG if chosen.logs_requests else LOG_CONFIG
    return [
        "java",
        *SMALL_JVM,
        *chosen.jvm,
        f"-Djava.io.tmpdir={tempfile.gettempdir()}",  # the folder of the run: a killed JVM leaves its libraries there
        f"-Dlog4j2.configurationFile={log_config}",
        "-cp",
        f"{libs}/*{more}",
        *arguments,
    ]
