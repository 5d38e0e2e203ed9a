"""How Kafka's Java clients connect."""

from tests.cluster.cluster import Cluster
from tests.cluster.users import USERS

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def login(kafka: Cluster, user: str) -> dict[str, str]:
    """Their settings, by SASL/PLAIN as one of `USERS`."""
    return {
        "bootstrap.servers": kafka.sasl,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_MODULE} required username="{user}" password="{USERS[user]}";',
    }
