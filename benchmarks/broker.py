"""A real broker with 5,000 clients, whose metrics the agents in its JVM serve."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import provision
from tests.cluster.agents import RULES, Agents
from tests.cluster.certificates import make_certificates
from tests.cluster.node import Node
from tests.cluster.ports import free_port
from tests.cluster.properties import Plan, properties
from tests.cluster.quotas import Quotas

from quotascope.clients import Connection, SecurityProtocol
from quotascope.exporter.sources.jolokia import BY_TYPE

QUOTAS = {
    "producer_byte_rate": 1e9,
    "consumer_byte_rate": 1e9,
    "request_percentage": 1e4,
}
PRODUCE, FETCH = (0, 3), (1, 4)
"""API keys and versions whose requests are short."""
NO_TOPICS = {
    PRODUCE: struct.pack(">hhii", -1, 1, 1000, 0),
    FETCH: struct.pack(">iiiibi", -1, 0, 0, 1 << 20, 0, 0),
}
AT_ONCE = 100
"""Requests under way."""


@dataclass(frozen=True, slots=True)
class RivalAgents(Agents):
    """
    Jolokia 2, Strimzi's reporter, and jmx_exporter twice.

    The latter as it is usually set up, and with an allowlist of the beans that Jolokia is asked for.

    The JVM is that of a small server, where the one of the tests spares its compiler.
    """

    rules: Path = RULES
    """Rules of jmx_exporter; what they allow is not regarded."""
    complete_port: int = field(default_factory=free_port)
    listed_port: int = field(default_factory=free_port)

    @property
    def complete(self) -> str:
        """URL of a complete scrape."""
        return f"http://127.0.0.1:{self.complete_port}/metrics"

    @property
    def listed(self) -> str:
        """URL of a scrape of the allowlist."""
        return f"http://127.0.0.1:{self.listed_port}/metrics"

    def jvm_option(self, folder: Path) -> str:
        """Return a file of options."""
        jars = provision.agents()
        complete, listed = folder / "complete.yml", folder / "listed.yml"
        rules = _without_allowlist(self.rules.read_text())
        complete.write_text(rules)
        patterns = "".join(f'  - "{request.pattern}"\n' for request in BY_TYPE)
        listed.write_text(f"includeObjectNames:\n{patterns}{rules}")
        lines = [
            f"{jars}/jolokia2.jar=host=127.0.0.1,port={self.jolokia2_port},agentContext=/jolokia",
            f"{jars}/jmx_exporter.jar=127.0.0.1:{self.complete_port}:{complete}",
            f"{jars}/jmx_exporter.jar=127.0.0.1:{self.listed_port}:{listed}",
        ]
        (folder / "agents").write_text("\n".join(lines))
        options = [
            f"-javaagent:{jars}/agent-loader.jar={folder}/agents",
            "-Xmx1g",
            "-XX:TieredStopAtLevel=4",
        ]
        (folder / "options").write_text("\n".join(options))
        return f"@{folder}/options"


def _without_allowlist(rules: str) -> str:
    lines: list[str] = []
    skipping = False
    for line in rules.splitlines(keepends=True):
        if not line.startswith((" ", "#", "-")):
            skipping = line.startswith(("includeObjectNames", "whitelistObjectNames"))
        if not skipping:
            lines.append(line)
    return "".join(lines)


class Broker:
    """One node that is broker and controller."""

    def __init__(self, folder: Path, rules: Path) -> None:
        certificates = make_certificates(folder)
        plan = Plan(node_id=1, broker=True, controller=True)
        config = properties(plan, [plan], folder / "data", certificates, authorizer=False)
        self.agents = RivalAgents(certificates, rules=rules)
        self.address = plan.address("ADMIN")
        self._node = Node(1, folder / "node", config, self.agents)

    @property
    def pid(self) -> int:
        """Id of its process."""
        assert self._node.pid is not None
        return self._node.pid

    @contextmanager
    def running(self) -> Iterator["Broker"]:
        """Start it, with quotas for every pair of user and client id, and end it."""
        self._node.format()
        self._node.start()
        try:
            self._node.wait_until_ready()
            self._set_quotas()
            yield self
        finally:
            self._node.kill()

    def _set_quotas(self) -> None:
        connection = Connection(bootstrap_servers=(self.address,), protocol=SecurityProtocol.PLAINTEXT)
        with closing(Quotas(connection)) as quotas:
            quotas.set(({"user": None, "client-id": None}, QUOTAS))

    def use(self, client_ids: Sequence[str]) -> None:
        """Let clients of these names produce and fetch, without any topic."""
        host, port = self.address.split(":")
        with socket.create_connection((host, int(port)), 30) as link:
            answers = link.makefile("rb")
            for start in range(0, len(client_ids), AT_ONCE):
                chunk = client_ids[start : start + AT_ONCE]
                requests = [_request(api, name) for name in chunk for api in (PRODUCE, FETCH)]
                link.sendall(b"".join(requests))
                for _ in requests:
                    (size,) = struct.unpack(">i", answers.read(4))
                    answers.read(size)


def _request(api: tuple[int, int], client_id: str) -> bytes:
    name = client_id.encode()
    header = struct.pack(f">hhih{len(name)}s", *api, 0, len(name), name)
    body = header + NO_TOPICS[api]
    return struct.pack(">i", len(body)) + body
