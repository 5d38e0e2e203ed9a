"""A real Kafka cluster for tests, as processes on free loopback ports."""

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .agents import Agents
from .certificates import Certificates, make_certificates
from .node import Node
from .properties import Plan, properties


class Layout(enum.Enum):
    """Who does what: the ids of the nodes that are brokers, and of those that are controllers."""

    COMBINED = ((1,), (1,))
    SPLIT = ((1,), (100,))
    FAILOVER = ((1,), (101, 102, 103))


class Cluster:
    """
    A running cluster. Every broker has four listeners, named here by the address of the first broker.

    - `admin`: PLAINTEXT, whose user is ANONYMOUS (a super user where there is an authorizer)
    - `sasl`: SASL_PLAINTEXT with PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, for every user of `users.USERS`
    - `ssl`: SSL with client certificates required (`certificates.client` is `User:CN=alice`)
    - `sasl_ssl`: SASL_SSL with the mechanisms of `sasl`
    """

    def __init__(
        self, layout: Layout, folder: Path, *, authorizer: bool = False
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        brokers, controllers = layout.value
        self.certificates: Certificates = make_certificates(folder)
        plans = [
            Plan(
                node_id=node_id,
                broker=node_id in brokers,
                controller=node_id in controllers,
            )
            for node_id in sorted({*brokers, *controllers})
        ]
        voters = [plan for plan in plans if plan.controller]
        self.nodes: dict[int, Node] = {}
        for plan in plans:
            home = folder / f"node-{plan.node_id}"
            config = properties(
                plan, voters, home / "data", self.certificates, authorizer=authorizer
            )
            self.nodes[plan.node_id] = Node(
                plan.node_id, home, config, Agents(self.certificates)
            )
        self.brokers = [self.nodes[node_id] for node_id in brokers]
        self.controllers = [self.nodes[node_id] for node_id in controllers]
        first = plans[0]
        self.admin = first.address("ADMIN")
        self.sasl = first.address("SASL")
        self.ssl = first.address("TLS")
        self.sasl_ssl = first.address("SASLTLS")

    def start(self) -> None:
        """Format and start every node, and wait until all serve."""
        for node in self.nodes.values():
            node.format()
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_until_ready()

    def stop(self) -> None:
        """End every node; brokers first, because they take leave of their controller."""
        for node in [*self.brokers, *self.controllers]:
            node.stop()


@contextmanager
def running(
    layout: Layout, folder: Path, *, authorizer: bool = False
) -> Iterator[Cluster]:
    """A cluster for the length of a `with` block; its files and logs are kept in `folder`."""
    cluster = Cluster(layout, folder, authorizer=authorizer)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
