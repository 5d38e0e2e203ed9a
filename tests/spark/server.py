"""Where a task's Python clients connect, and as whom."""

from typing import Any, NamedTuple

from tests.cluster.users import USERS


class Server(NamedTuple):
    """The SASL listener of a broker, for a client of alice's."""

    address: str
    client_id: str

    def librdkafka(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address,
            "client.id": self.client_id,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": USERS["alice"],
            "log_level": 0,
        }

    def pure_python(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.address,
            "client_id": self.client_id,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": USERS["alice"],
        }
