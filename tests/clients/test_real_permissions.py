"""Which ACLs the Admin API of a real broker with StandardAuthorizer asks for (docs/permissions.md)."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.tools import run_tool

from quotascope.clients import PermissionMissing, QuotaAdmin, QuotaChange, SecurityProtocol, open_quota_admin

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"
CHANGE = QuotaChange(entity={"user": "zoe"}, key="producer_byte_rate", value=None)
"""Takes away what no one has: it needs the permission, and leaves nothing behind."""
CALLS: dict[str, Callable[[QuotaAdmin], object]] = {
    "describe_quotas": lambda admin: admin.describe_quotas(),
    "describe_settings": lambda admin: admin.describe_settings(1),
    "describe_quorum_leader": lambda admin: admin.describe_quorum_leader(),
    "alter_quotas": lambda admin: admin.alter_quotas([CHANGE]),
}

OPENED = {
    "Describe": {"describe_quorum_leader"},
    "DescribeConfigs": {"describe_quotas", "describe_settings"},
    "AlterConfigs": {
        "describe_quotas",
        "describe_settings",
        "alter_quotas",
    },  # implies DescribeConfigs
}
"""The calls that each operation on the cluster permits."""


@pytest.fixture
def mallory(guarded_kafka: Cluster) -> Iterator[QuotaAdmin]:
    """The Admin API as a user who has no rights at all."""
    settings = guarded_kafka.connection(SecurityProtocol.SASL_PLAINTEXT, "mallory")
    with closing(open_quota_admin(settings)) as admin:
        yield admin


def missing(admin: QuotaAdmin) -> dict[str, PermissionMissing]:
    """The calls that are not permitted, each with its error."""
    refused = {}
    for name, call in CALLS.items():
        try:
            call(admin)
        except PermissionMissing as error:
            refused[name] = error
    return refused


def test_the_cluster_is_described_to_every_user(mallory: QuotaAdmin) -> None:
    """DescribeCluster needs no ACL, so that a missing one elsewhere can be reported with the brokers' names."""
    assert [node.node_id for node in mallory.describe_cluster().nodes] == [1]


def test_the_advice_grants_what_is_missing(guarded_kafka: Cluster, mallory: QuotaAdmin) -> None:
    """Every call is refused; each command that the errors name opens the calls that named it."""
    refused = missing(mallory)
    assert refused.keys() == CALLS.keys()
    for operation, opened in OPENED.items():
        grant = {error.grant for error in refused.values() if error.operation == operation}
        script, add, *acl = shlex.split(grant.pop())
        assert (script, add) == ("kafka-acls.sh", "--add")
        run_tool(guarded_kafka, script, add, *acl)
        assert missing(mallory).keys() == CALLS.keys() - opened
        run_tool(guarded_kafka, script, "--remove", "--force", *acl)
        assert missing(mallory).keys() == CALLS.keys()


def test_the_page_reports_the_same(mallory: QuotaAdmin) -> None:
    """docs/permissions.md holds the command of each permission: those for reading first, and that for changing apart."""
    reading, heading, changing = PAGE.read_text().partition("## Changing quotas")
    assert heading
    refused = missing(mallory)
    assert refused.keys() == CALLS.keys()
    for name, error in refused.items():
        reported = error.grant.removeprefix("kafka-acls.sh --add ")
        assert (reported.replace("mallory", "quotascope") in reading) == (name != "alter_quotas")
        assert (reported.replace("mallory", "operator") in changing) == (name == "alter_quotas")
