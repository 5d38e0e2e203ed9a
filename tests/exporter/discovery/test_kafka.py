from __future__ import annotations

import pytest
from tests.exporter.limits.scripted import DENIED, ScriptedAdmin

from quotascope.clients.errors import AdminUnreachable, ClientError
from quotascope.clients.quota_admin import Node
from quotascope.exporter.config import KafkaDiscoveryConfig
from quotascope.exporter.discovery.kafka import KafkaFinder
from quotascope.exporter.errors import DiscoveryError

BROKERS = ["http://broker-1:1/1", "http://broker-2:1/2"]
CONTROLLER = "http://controller-100:2/100"


def node(node_id: int, host: str, rack: str | None = None) -> Node:
    return Node(node_id=node_id, host=host, port=1, rack=rack)


def finder(
    admin: ScriptedAdmin,
    *listed: str,
    clock: list[float] | None = None,
    controller_url: str = "http://{host}:2/{node_id}",
) -> KafkaFinder:
    """Asks a scripted cluster; ``clock`` holds the time."""
    times = clock or [0.0]
    config = KafkaDiscoveryConfig(url="http://{host}:1/{node_id}", controller_url=controller_url, controllers=listed)
    return KafkaFinder(config, admin, lambda: times[0])


async def urls(kafka_finder: KafkaFinder) -> tuple[list[str], str | None]:
    result = await kafka_finder.find()
    return [target.url for target in result.targets], result.problem


@pytest.mark.parametrize(
    ("voters", "listed", "controllers", "problem"),
    [
        ([node(100, "a")], [], ["http://a:2/100"], None),
        ([node(100, "a"), node(1, "other")], [], ["http://a:2/100"], None),
        (
            [node(101, "::1"), node(100, "a/../b")],
            [],
            ["http://[::1]:2/101"],
            "node 100: the host 'a/../b' cannot be part of a URL",
        ),
        # before Kafka 3.9 only their ids are reported
        (
            [],
            [],
            [],
            "the cluster does not report where its controllers [100] are: list them under discovery.kafka.controllers",
        ),
        (DENIED, [], [], f"the controllers cannot be found: {DENIED}"),
        ([], ["100@listed:9093"], ["http://listed:2/100"], None),
        ([], ["100@[::1]:9093"], ["http://[::1]:2/100"], None),
        (DENIED, ["100@listed:9093"], ["http://listed:2/100"], None),
    ],
)  # fmt: skip
async def test_brokers_and_controllers(
    voters: list[Node] | ClientError, listed: list[str], controllers: list[str], problem: str | None
) -> None:
    """
    Brokers and controllers have their own addresses, and a node with both roles is one source.

    What a node advertises in error costs only itself. Neither brokers nor listed controllers need a permission.
    """
    admin = ScriptedAdmin()
    if isinstance(voters, ClientError):
        admin.errors["voters"] = voters
    else:
        admin.voters = tuple(voters)
    assert await urls(finder(admin, *listed)) == ([*BROKERS, *controllers], problem)


async def test_rack_is_part_of_the_url() -> None:
    """The rack is part of a URL, and a node without one is left out where the URL needs it."""
    admin = ScriptedAdmin()
    admin.voters = node(100, "a", rack="west"), node(101, "b")
    assert await urls(finder(admin, controller_url="http://{host}/{rack}")) == (
        [*BROKERS, "http://a/west"],
        "node 101: there is no rack to put into {rack}",
    )


async def test_broker_that_an_old_cluster_reports_no_more_is_kept_for_an_hour() -> None:
    """A broker that an old cluster no longer reports is kept for an hour, and one of a new cluster is gone at once."""
    clock = [0.0]
    admin = ScriptedAdmin()
    admin.with_fenced = False
    looking = finder(admin, clock=clock)
    await looking.find()
    admin.brokers = [1]
    clock[0] = 3600.0
    assert (await urls(looking))[0] == [*BROKERS, CONTROLLER]
    clock[0] = 3601.0
    assert (await urls(looking))[0] == [BROKERS[0], CONTROLLER]
    admin.brokers, admin.with_fenced = [2], True
    assert (await urls(looking))[0] == [BROKERS[1], CONTROLLER]


async def test_cluster_that_cannot_be_asked() -> None:
    """A cluster that cannot be asked is an error with the reason, and the connection is released."""
    admin = ScriptedAdmin()
    admin.errors["brokers"] = AdminUnreachable(("a:1",), "connection refused")
    looking = finder(admin)
    with pytest.raises(DiscoveryError, match="connection refused"):
        await looking.find()
    await looking.close()
    assert admin.closed
