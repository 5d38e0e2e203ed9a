"""A topic whose replica moves from one broker to another."""

import os
import uuid
from collections.abc import Sequence

import confluent_kafka
import kafka as kafka_python

from .cluster import Cluster


class Replicas:
    """Topics of one partition, and where their replicas are; every replica is under the replication throttle, if there is one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._admin = kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)

    def topic(self, brokers: Sequence[int], records: int) -> str:
        """Create a topic with its replicas on these brokers, filled with records of 1000 bytes that do not compress."""
        name = f"replicas-{uuid.uuid4().hex[:12]}"
        throttled = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
        shape = {"assignments": {0: list(brokers)}, "configs": throttled}
        self._admin.create_topics({name: shape}, wait_for_metadata=True)
        producer = confluent_kafka.Producer({"bootstrap.servers": self._cluster.admin, "log_level": 0})
        for _ in range(records):
            producer.produce(name, os.urandom(1000))
        assert producer.flush(20) == 0
        return name

    def move(self, topic: str, brokers: Sequence[int]) -> None:
        """Begin to move the replicas to these brokers."""
        partition = kafka_python.TopicPartition(topic, 0)
        answer = self._admin.alter_partition_reassignments({partition: list(brokers)})
        assert answer == {partition: None}

    def moving(self) -> bool:
        """Whether a replica is still to be moved."""
        return bool(self._admin.list_partition_reassignments())

    def close(self) -> None:
        """End the connection."""
        self._admin.close()
