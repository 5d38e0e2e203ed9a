from __future__ import annotations

import pytest

from quotascope.exporter.config import SourceConfig
from quotascope.exporter.discovery.target import NodeTarget, address, confirmed_ids, target_of

TEMPLATE = "https://{host}:8778/jolokia"


@pytest.mark.parametrize(
    ("template", "values", "url", "name"),
    [
        (TEMPLATE, {"host": "broker-1.kafka"}, "https://broker-1.kafka:8778/jolokia", "broker-1.kafka:8778"),
        # behind a proxy all nodes share host and port
        ("http://proxy:80/{node_id}/j/", {"node_id": "7"}, "http://proxy:80/7/j/", "proxy:80/7/j"),
    ],
)
def test_values_take_their_place(template: str, values: dict[str, str], url: str, name: str) -> None:
    """A source's name is its host and port, with the path where nodes differ in nothing else."""
    assert target_of(template, values, 1) == NodeTarget(url=url, name=name, node_id=1)


HOSTS = ["", "a/../b", "a?b", "a#b", "user@a", "a:1", "a b", "a\n", "é", "[::1", "-", "a%2f", "x" * 300]
RACKS = ["..", ".", "a/b", "a b", "%2e%2e", ""]


@pytest.mark.parametrize(("place", "value"), [*(("host", host) for host in HOSTS), *(("rack", rack) for rack in RACKS)])
def test_no_value_can_reach_elsewhere(place: str, value: str) -> None:
    """A broker's host may hold no path, port, user or line end; a rack is one step of a path."""
    with pytest.raises(ValueError, match=place):
        target_of("https://{host}:8778/{rack}/jolokia", {"host": "a", "rack": "b", place: value})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("broker-1:9404", "broker-1", "9404"),
        ("10.0.0.1", "10.0.0.1", ""),
        ("[fe80::1]:65535", "[fe80::1]", "65535"),
        ("[::1]", "[::1]", ""),
    ],
)
def test_address(text: str, host: str, port: str) -> None:
    """Names, IPv4 and IPv6 addresses are accepted with or without a port."""
    parsed = address(text)
    assert (parsed.host, parsed.port, str(parsed)) == (host, port, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "a:",
        "a:0",
        "a:65536",
        "a:٣",
        "a:1:2",
        "::1",
        "http://a:1",
        "a:1/x",
        "a@b:1",
        "a:1\n",
        "a:" + "9" * 5000,
    ],
)
def test_address_that_is_none(text: str) -> None:
    """Anything beside HOST:PORT is refused."""
    with pytest.raises(ValueError, match=r"port|HOST:PORT"):
        address(text)


def test_a_discovery_confirms_the_node_of_a_configured_address() -> None:
    """A discovery confirms the node of a configured address, with or without a final slash, by its first answer."""
    merged_configs = [
        NodeTarget(url="http://a:1/jolokia/", name="x"),
        NodeTarget(url="http://a:1/jolokia/", name="y", node_id=7),
        NodeTarget(url="http://a:1/jolokia", name="z", node_id=8),
        NodeTarget(url="http://c:1/jolokia", name="w", node_id=9),
    ]
    fixed = [SourceConfig(name=host, url=f"http://{host}:1/jolokia") for host in "ab"]
    assert confirmed_ids(fixed, merged_configs) == {"a": "7"}
    assert confirmed_ids(fixed, []) == {}
