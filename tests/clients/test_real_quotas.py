"""The Admin API of a real broker, by every protocol and mechanism."""

from contextlib import closing

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas

from quotascope.clients import ConfiguredQuota, SaslMechanism, SecurityProtocol, open_quota_admin
from quotascope.metrics import KafkaRelease

pytestmark = pytest.mark.real
WITH_PASSWORD = SaslMechanism.PLAIN, SaslMechanism.SCRAM_SHA_256, SaslMechanism.SCRAM_SHA_512
"""The others: test_real_logins.py."""


@pytest.mark.parametrize("mechanism", WITH_PASSWORD)
@pytest.mark.parametrize("protocol", SecurityProtocol)
def test_reads_everything_by_every_protocol_and_mechanism(
    kafka: Cluster, quotas: Quotas, protocol: SecurityProtocol, mechanism: SaslMechanism
) -> None:
    """Quotas, cluster, settings and the active controller come the same way through every listener."""
    quotas.set(({"user": "svc:team a", "client-id": None}, {"producer_byte_rate": 1024.0}))
    with closing(open_quota_admin(kafka.connection(protocol, "svc:team a", mechanism))) as admin:
        assert admin.describe_quotas() == (
            ConfiguredQuota(entity={"user": "svc:team a", "client-id": None}, key="producer_byte_rate", value=1024.0),
        )
        assert [node.node_id for node in admin.describe_cluster().nodes] == [1]
        assert admin.describe_settings(1).num_io_threads == 8
        assert admin.describe_quorum_leader() == 1
        assert admin.describe_release() == KafkaRelease(4, 3)
