"""The `server.properties` of a test node."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .certificates import Certificates
from .ports import free_port
from .users import SCRAM_MECHANISMS, SUPER_USERS, plain_jaas, scram_jaas

PROTOCOLS = {
    "ADMIN": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "SASLTLS": "SASL_SSL",
    "CONTROLLER": "PLAINTEXT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Roles of one node, and the port of each of its listeners."""

    node_id: int
    broker: bool
    controller: bool
    tls: bool = True
    """True if brokers have listeners with TLS, by stores in PEM that some older releases cannot read."""
    zookeeper: str | None = None
    """The address of a ZooKeeper, for a node without KRaft."""
    ports: dict[str, int] = field(default_factory=lambda: {listener: free_port() for listener in PROTOCOLS})

    def listeners(self) -> list[str]:
        client = [name for name in PROTOCOLS if name != "CONTROLLER" and (self.tls or "TLS" not in name)]
        return client * self.broker + ["CONTROLLER"] * self.controller

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"


def properties(
    plan: Plan, voters: Sequence[Plan], data: Path, certificates: Certificates, *, authorizer: bool
) -> dict[str, str]:
    return {
        **(_kraft(plan, voters) if plan.zookeeper is None else _with_zookeeper(plan.node_id, plan.zookeeper)),
        "listeners": ",".join(f"{name}://{plan.address(name)}" for name in plan.listeners()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
        "log.dirs": str(data),
        **(_broker() if plan.broker else {}),
        **(_tls(certificates) if plan.broker and plan.tls else {}),
        **_small(),
        **(_authorizer() if authorizer else {}),
    }


def _kraft(plan: Plan, voters: Sequence[Plan]) -> dict[str, str]:
    return {
        "node.id": str(plan.node_id),
        "process.roles": ",".join(["broker"] * plan.broker + ["controller"] * plan.controller),
        "controller.quorum.voters": ",".join(f"{voter.node_id}@{voter.address('CONTROLLER')}" for voter in voters),
        "controller.listener.names": "CONTROLLER",
    }


def _with_zookeeper(node_id: int, address: str) -> dict[str, str]:
    return {"broker.id": str(node_id), "zookeeper.connect": address, "zookeeper.session.timeout.ms": "6000"}


def _broker() -> dict[str, str]:
    return {"inter.broker.listener.name": "ADMIN", **_sasl("sasl")}


def _tls(certificates: Certificates) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "listener.name.tls.ssl.client.auth": "required",
        **_sasl("sasltls"),
    }


def _sasl(listener: str) -> dict[str, str]:
    prefix = f"listener.name.{listener}"
    return {
        f"{prefix}.sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
        f"{prefix}.plain.sasl.jaas.config": plain_jaas(),
        **{f"{prefix}.{mechanism.lower()}.sasl.jaas.config": scram_jaas() for mechanism in SCRAM_MECHANISMS},
    }


def _small() -> dict[str, str]:
    """Return settings for one replica of everything, one partition of Kafka's own topics, and no wait for members."""
    return {
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }


def _authorizer() -> dict[str, str]:
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": SUPER_USERS,
    }
