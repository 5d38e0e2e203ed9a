from __future__ import annotations

import re

import pytest
from tests.exporter.limits.test_admin import DENIED, ScriptedAdmin

from quotascope.clients.errors import AdminUnreachable, ClientError
from quotascope.clients.quota_admin import Node
from quotascope.exporter.config import KafkaDiscoveryConfig
from quotascope.exporter.discovery.kafka import KafkaFinder
from quotascope.exporter.errors import DiscoveryError

LISTED = "100@listed:9093"


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


async def urls(found: KafkaFinder) -> tuple[list[str], str | None]:
    result = await found.find()
    return [target.url for target in result.targets], result.problem


BROKERS = ["http://broker-1:1/1", "http://broker-2:1/2"]
CONTROLLER = "http://controller-100:2/100"


async def test_brokers_and_controllers() -> None:
    """Each kind has its own address; in combined mode the voters are brokers, and a node with both roles is one."""
    admin = ScriptedAdmin()
    assert await urls(finder(admin)) == ([*BROKERS, CONTROLLER], None)
    admin.voters = (Node(node_id=1, host="other", port=1), *admin.voters)
    assert await urls(finder(admin)) == ([*BROKERS, CONTROLLER], None)


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        # before Kafka 3.9 only their ids are reported
        (None, r".*controllers \[100\].*discovery\.kafka\.controllers"),
        (DENIED, "the controllers cannot be found"),
    ],
)
async def test_controllers_that_the_cluster_does_not_report_have_to_be_listed(
    error: ClientError | None, reported: str
) -> None:
    """Brokers are found without any permission; controllers that are listed need none either."""
    admin = ScriptedAdmin()
    admin.voters = ()
    if error is not None:
        admin.errors["voters"] = error
    found, problem = await urls(finder(admin))
    assert found == BROKERS
    assert re.match(reported, problem or "")
    assert await urls(finder(admin, LISTED)) == ([*BROKERS, "http://listed:2/100"], None)


async def test_broker_that_an_old_cluster_reports_no_more_is_kept_for_an_hour() -> None:
    """It may be down; a new cluster reports, and there it is gone at once."""
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


async def test_host_that_is_none_is_left_out() -> None:
    """A node that advertises nonsense costs only itself; an IPv6 address gets its brackets."""
    admin = ScriptedAdmin()
    admin.voters = Node(node_id=100, host="a/../b", port=1), Node(node_id=101, host="::1", port=1)
    found, problem = await urls(finder(admin))
    assert found == [*BROKERS, "http://[::1]:2/101"]
    assert problem == "node 100: the host 'a/../b' cannot be part of a URL"


async def test_rack_is_part_of_the_url() -> None:
    """A node without a rack is left out where the URL needs one."""
    admin = ScriptedAdmin()
    admin.voters = Node(node_id=100, host="a", port=1, rack="west"), Node(node_id=101, host="b", port=1)
    found, problem = await urls(finder(admin, controller_url="http://{host}/{rack}"))
    assert found == [*BROKERS, "http://a/west"]
    assert problem == "node 101: there is no rack to put into {rack}"


async def test_cluster_that_cannot_be_asked() -> None:
    """The error says why; afterwards the connection is released."""
    admin = ScriptedAdmin()
    admin.errors["brokers"] = AdminUnreachable(("a:1",), "connection refused")
    looking = finder(admin)
    with pytest.raises(DiscoveryError, match="connection refused"):
        await looking.find()
    await looking.close()
    assert admin.closed
