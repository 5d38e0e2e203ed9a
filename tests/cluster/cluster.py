"""A real Kafka cluster for tests, as processes on free loopback ports."""

import enum
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quotascope.clients import Connection, Sasl, SaslMechanism, Secret, SecurityProtocol, Tls

from .agents import Agents
from .certificates import make_certificates
from .node import Node, Program
from .properties import Plan, properties
from .users import USERS


class Layout(enum.Enum):
    """Who does what: the ids of the nodes that are brokers, and of those that are controllers."""

    COMBINED = ((1,), (1,))
    PAIR = ((1, 2), (1,))
    SPLIT = ((1,), (100,))
    FAILOVER = ((1,), (101, 102, 103))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin(Program):
    """What is special about every node: its program, and settings, such as those that name classes of one's own."""

    settings: Mapping[str, str] = field(default_factory=dict)


class Cluster:
    """
    A running cluster.

    Every broker has four listeners, given here as `host:port` of the first broker:

    - `admin`: PLAINTEXT, whose user is ANONYMOUS (a super user where there is an authorizer)
    - `sasl`: SASL_PLAINTEXT with PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, for every user of `users.USERS`
    - `ssl`: SSL with client certificates required (`certificates.client` is `User:CN=alice`)
    - `sasl_ssl`: SASL_SSL with the mechanisms of `sasl`

    `nodes` holds every node by its id; `brokers` and `controllers` are lists of the same nodes.
    """

    def __init__(self, layout: Layout, folder: Path, *, authorizer: bool = False, plugin: Plugin | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._plugin = plugin or Plugin()
        self.certificates = make_certificates(folder)
        brokers, controllers = layout.value
        plans = [
            Plan(node_id=node_id, broker=node_id in brokers, controller=node_id in controllers)
            for node_id in sorted({*brokers, *controllers})
        ]
        self.nodes = {
            plan.node_id: self._node(plan, plans, folder / f"node-{plan.node_id}", authorizer=authorizer)
            for plan in plans
        }
        self.brokers = [self.nodes[node_id] for node_id in brokers]
        self.controllers = [self.nodes[node_id] for node_id in controllers]
        self.admin, self.sasl, self.ssl, self.sasl_ssl = (
            plans[0].address(listener) for listener in ("ADMIN", "SASL", "TLS", "SASLTLS")
        )

    def _node(self, plan: Plan, plans: list[Plan], home: Path, *, authorizer: bool) -> Node:
        voters = [voter for voter in plans if voter.controller]
        config = properties(plan, voters, home / "data", self.certificates, authorizer=authorizer)
        settings = {**config, **self._plugin.settings}
        return Node(plan.node_id, home, settings, Agents(self.certificates), self._plugin)

    def connection(
        self,
        protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
        user: str = "admin",
        mechanism: SaslMechanism = SaslMechanism.PLAIN,
    ) -> Connection:
        """The settings with which our own Admin client reaches this cluster; `user` is for the SASL protocols."""
        tls = Tls(
            ca_file=self.certificates.ca, cert_file=self.certificates.client, key_file=self.certificates.client_key
        )
        sasl = Sasl(mechanism=mechanism, username=user, password=Secret(USERS[user]))
        servers = {
            SecurityProtocol.PLAINTEXT: self.admin,
            SecurityProtocol.SSL: self.ssl,
            SecurityProtocol.SASL_PLAINTEXT: self.sasl,
            SecurityProtocol.SASL_SSL: self.sasl_ssl,
        }
        return Connection(
            bootstrap_servers=(servers[protocol],),
            protocol=protocol,
            sasl=sasl if protocol.uses_sasl else None,
            tls=tls,
        )

    def start(self) -> None:
        """Format and start every node, and wait until all serve."""
        first, *others = self.nodes.values()
        first.format()
        for node in others:
            node.format_like(first)
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_until_ready()

    def end(self) -> None:
        """End every node at once; the data is not needed any more."""
        for node in self.nodes.values():
            node.kill()


@contextmanager
def running(
    layout: Layout, folder: Path, *, authorizer: bool = False, plugin: Plugin | None = None
) -> Iterator[Cluster]:
    """A cluster for the length of a `with` block; its files and logs are kept in `folder`."""
    cluster = Cluster(layout, folder, authorizer=authorizer, plugin=plugin)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
