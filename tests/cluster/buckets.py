"""Client ids whose creations of topics soon have to wait, and topics for them."""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager

from kafka import KafkaAdminClient
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration.eventually import eventually


def full_bucket(quotas: Quotas, traffic: Traffic, role: str, rate: float) -> str:
    """
    Return a client id of carol's with a full bucket and a rate in partitions a second.

    A second one with the same limit is overdrawn to see that the limit is in force.
    """
    name, canary = (f"{prefix}-{uuid.uuid4().hex[:12]}" for prefix in (role, "canary"))
    limit = {"controller_mutation_rate": rate}
    quotas.set(*(({"user": "carol", "client-id": client_id}, limit) for client_id in (name, canary)))

    def applied() -> None:
        answer = traffic.mutate("carol", canary, 1_000, validate_only=True)
        assert answer.error == 89

    eventually(applied)
    return name


@contextmanager
def topic_names(kafka: Cluster, role: str, count: int) -> Iterator[list[str]]:
    """Yield names of so many topics, and delete the ones that exist in the end with an unlimited client."""
    names = [f"{role}-{uuid.uuid4().hex[:12]}" for _ in range(count)]
    yield names
    with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
        admin.delete_topics(names, raise_errors=False)
