"""How a user logs in at a real broker, for each client library."""

from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.users import USERS


def librdkafka(kafka: Cluster, user: str, client_id: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.sasl,
        "client.id": client_id,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": USERS[user],
        "log_level": 0,
    }


def pure_python(kafka: Cluster, user: str, client_id: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.sasl,
        "client_id": client_id,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": USERS[user],
    }
