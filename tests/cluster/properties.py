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
    """What one node is: its roles and the port of each of its listeners."""

    node_id: int
    broker: bool
    controller: bool
    ports: dict[str, int] = field(default_factory=lambda: {listener: free_port() for listener in PROTOCOLS})

    def listeners(self) -> list[str]:
        client = [name for name in PROTOCOLS if name != "CONTROLLER"]
        return client * self.broker + ["CONTROLLER"] * self.controller

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"


def properties(
    plan: Plan, voters: Sequence[Plan], data: Path, certificates: Certificates, *, authorizer: bool
) -> dict[str, str]:
    quorum = ",".join(f"{voter.node_id}@{voter.address('CONTROLLER')}" for voter in voters)
    return {
        "node.id": str(plan.node_id),
        "process.roles": ",".join(["broker"] * plan.broker + ["controller"] * plan.controller),
        "controller.quorum.voters": quorum,
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(f"{name}://{plan.address(name)}" for name in plan.listeners()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
        "log.dirs": str(data),
        **(_broker(certificates) if plan.broker else {}),
        **_small(),
        **(_authorizer() if authorizer else {}),
    }


def _broker(certificates: Certificates) -> dict[str, str]:
    return {
        "inter.broker.listener.name": "ADMIN",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "listener.name.tls.ssl.client.auth": "required",
        **_sasl("sasl"),
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
    """One replica of everything, one partition of what Kafka keeps for itself, and no waiting for more members."""
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
