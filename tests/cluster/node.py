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

from tests import class_data

from . import provision
from .agents import Agents
from .users import scram_records

CLUSTER_ID: Final = "cXVvdGFzY29wZS10ZXN0cw"
_HERE: Final = Path(__file__).parent
_READY: Final = ("Kafka Server started", ": [KafkaServer id={node_id}] started")
"""Log lines of a node that is ready: under KRaft, and with ZooKeeper."""
SMALL_JVM: Final = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class NodeError(Exception):
    """A node did not start; the message ends with its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Kafka that runs in a node."""

    classes: Path | None = None
    """A folder of further classes on its class path."""
    newest: bool = False
    """The newest release that can be fetched, instead of the one whose tools can be fetched as well."""
    version: str = ""
    """Another release, such as 3.7.2 (`provision.release_libs`)."""
    logs_requests: bool = False
    """True if every answered request is a line in `Node.request_log`."""
    jvm: tuple[str, ...] = ()
    """Further options of its JVM."""


class Node:
    """
    A node that is started, stopped, killed and started again, on the same ports and with the same data.

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

    def attach(self, file: Path) -> None:
        """Load more agents, given as the lines of a file (JAR=ARGUMENTS), into the running process until it ends."""
        loader = provision.agents() / "agent-loader.jar"
        command = ["jcmd", str(self.pid), "JVMTI.agent_load", str(loader), str(file)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if "return code: 0" not in process.stdout:
            raise NodeError(f"node {self.node_id} did not load {file}:\n{process.stdout}{process.stderr}")

    def format(self) -> None:
        """
        Write the configuration and an empty metadata log that knows the SCRAM users; older releases know none.

        Raises `NodeError`.
        """
        self._configure()
        if "broker.id" in self._properties:
            return  # with ZooKeeper
        users = () if self._program.version else scram_records()
        words = ("format", "-t", CLUSTER_ID, "-c", str(self._config), *users)
        command = java("kafka.tools.StorageTool", *words, program=replace(self._program, logs_requests=False))
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode != 0:
            raise NodeError(f"node {self.node_id} could not be formatted:\n{process.stdout}{process.stderr}")

    def format_like(self, other: "Node") -> None:
        """Format the node as a copy of another one that was formatted and not yet started: saves a JVM."""
        self._configure()
        if "broker.id" in self._properties:
            return
        shutil.copytree(other._data, self._data)
        lines = (self._data / "meta.properties").read_text().splitlines()
        own_values = {"node.id": self.node_id, "directory.id": uuid.uuid4().hex[:22]}
        copied = [line for line in lines if line.partition("=")[0] not in own_values]
        lines = [*copied, *(f"{key}={value}" for key, value in own_values.items())]
        (self._data / "meta.properties").write_text("\n".join(lines))

    def _configure(self) -> None:
        self._folder.mkdir(parents=True)
        text = "".join(f"{key}={value}\n" for key, value in self._properties.items())
        self._config.write_text(text.replace("\\", "\\\\"))

    def start(self, *, agents: bool = True) -> None:
        """Start the process, but do not wait for it."""
        command = java(
            *([self.agents.jvm_option(self._folder)] if agents else []),
            f"-DrequestLog={self.request_log}",
            "kafka.Kafka",
            str(self._config),
            program=self._program,
        )
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)

    def wait_until_ready(self, seconds: float = 120) -> None:
        """Wait until the node serves. Raises `NodeError` when it ended or when the time is over."""
        deadline = time.monotonic() + seconds
        ready = [text.format(node_id=self.node_id) for text in _READY]
        while not any(text in self.log.read_text(errors="replace") for text in ready):
            if not self.running or time.monotonic() > deadline:
                state = "is not ready" if self.running else "ended"
                raise NodeError(f"node {self.node_id} {state}:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)

    def stop(self, seconds: float = 20) -> None:
        """Shut down in order; a node that takes longer over it is killed."""
        if self._process is None:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
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
        """
        Stop the process within the block, as in a very long garbage collection.

        The kernel still takes connections to it.
        """
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
    """Return the command line of a small JVM with Kafka, and optionally further classes, on its class path."""
    chosen = program or Program()
    version = chosen.version
    libs = (
        provision.release_libs(version) if version else provision.newest_libs() if chosen.newest else provision.libs()
    )
    class_path = "" if chosen.classes is None else f":{chosen.classes}"
    log4j, option = (
        ("log4j1", "log4j.configuration=file:")
        if version and version < "4"
        else ("log4j2", "log4j2.configurationFile=")
    )
    archived = () if version or chosen.newest else class_data.using(provision.classes())
    requests = "-requests" if chosen.logs_requests else ""
    return [
        "java",
        *SMALL_JVM,
        *archived,
        *chosen.jvm,
        f"-Djava.io.tmpdir={tempfile.gettempdir()}",  # the folder of the run: a killed JVM leaves its libraries there
        f"-D{option}{_HERE / log4j}{requests}.properties",
        "-cp",
        f"{libs}/*{class_path}",
        *arguments,
    ]
