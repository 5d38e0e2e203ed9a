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
from .releases import ReleaseAgents
from .users import USERS
from .zookeeper import ZooKeeper


class Layout(enum.Enum):
    """
    The roles of the nodes: ids of the brokers, and of the controllers.

    Without controllers there is a ZooKeeper instead.
    """

    COMBINED = ((1,), (1,))
    PAIR = ((1, 2), (1,))
    TRIO = ((1, 2, 3), (1,))
    SPLIT = ((1,), (100,))
    FAILOVER = ((1,), (101, 102, 103))
    ZOOKEEPER = ((1,), ())
    ZOOKEEPER_PAIR = ((1, 2), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin(Program):
    """Special program and settings of every node, such as settings that name classes of a plugin."""

    settings: Mapping[str, str] = field(default_factory=dict)


class Cluster:
    """
    A running cluster.

    Every broker has four listeners, given here as `host:port` of the first broker:

    - `admin`: PLAINTEXT, whose user is ANONYMOUS (a super user where there is an authorizer)
    - `sasl`: SASL_PLAINTEXT with PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, for every user of `users.USERS`
    - `ssl`: SSL with client certificates required (`certificates.client` is `User:CN=alice`)
    - `sasl_ssl`: SASL_SSL with the mechanisms of `sasl`

    Those with TLS are missing in a release that `Plugin.version` names.

    `nodes` holds every node by its id; `brokers` and `controllers` are lists of the same nodes.
    """

    def __init__(self, layout: Layout, folder: Path, *, authorizer: bool = False, plugin: Plugin | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._plugin = plugin or Plugin()
        self.certificates = make_certificates(folder)
        brokers, controllers = layout.value
        version = self._plugin.version
        self.zookeeper = None if controllers else ZooKeeper(version, folder / "zookeeper")
        plans = [
            Plan(
                node_id=node_id,
                broker=node_id in brokers,
                controller=node_id in controllers,
                tls=not version,
                zookeeper=None if self.zookeeper is None else self.zookeeper.address,
            )
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
        agents = ReleaseAgents if self._plugin.version else Agents
        return Node(plan.node_id, home, settings, agents(self.certificates), self._plugin)

    def connection(
        self,
        protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
        user: str = "admin",
        mechanism: SaslMechanism = SaslMechanism.PLAIN,
    ) -> Connection:
        """
        Return the settings with which our own Admin client reaches this cluster.

        `user` is for the SASL protocols.
        """
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
        if self.zookeeper is not None:
            self.zookeeper.start()
        first_node, *others = self.nodes.values()
        first_node.format()
        for node in others:
            node.format_like(first_node)
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_until_ready()

    def end(self) -> None:
        """End every node at once; the data is not needed any more."""
        for node in self.nodes.values():
            node.kill()
        if self.zookeeper is not None:
            self.zookeeper.kill()


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
