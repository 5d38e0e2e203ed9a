"""Dynamic configs of a real cluster."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import kafka as kafka_python
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from quotascope.clients.kafka_python import private_send

from .cluster import Cluster

_BROKER = 4  # ConfigResource.Type
_SET, _DELETE = 0, 1  # AlterConfigOp.OpType


class Configs:
    """The dynamic configs of one cluster; None removes a key."""

    def __init__(self, cluster: Cluster) -> None:
        self._admin = kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)

    def of_broker(self, node_id: int | None, configs: Mapping[str, str | None]) -> None:
        """Change the configs of a broker, or with None the defaults of all brokers."""
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        changes = [
            resource.AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
            for key, value in configs.items()
        ]
        name = "" if node_id is None else str(node_id)
        request = IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=_BROKER, resource_name=name, configs=changes)], validate_only=False
        )
        (answer,) = private_send(self._admin, request, node_id)["responses"]
        assert answer["error_code"] == 0, answer

    @contextmanager
    def with_broker(self, node_id: int | None, configs: Mapping[str, str]) -> Iterator[None]:
        self.of_broker(node_id, configs)
        try:
            yield
        finally:
            self.of_broker(node_id, dict.fromkeys(configs))

    def close(self) -> None:
        self._admin.close()
