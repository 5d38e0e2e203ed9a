"""Sources that are configured beside those that a discovery found."""

from __future__ import annotations

from quotascope.exporter.config import SourceConfig
from quotascope.exporter.discovery.merge import confirmed
from quotascope.exporter.discovery.target import Target


def _source(name: str, url: str) -> SourceConfig:
    return SourceConfig(name=name, url=url)


def test_a_discovery_confirms_the_node_of_a_configured_address() -> None:
    """Whatever slash ends it; the first that names a node counts, and other addresses are not confirmed."""
    found = [
        Target(url="http://a:1/jolokia/", name="x"),
        Target(url="http://a:1/jolokia/", name="y", node_id=7),
        Target(url="http://a:1/jolokia", name="z", node_id=8),
        Target(url="http://c:1/jolokia", name="w", node_id=9),
    ]
    fixed = [
        _source("first", "http://a:1/jolokia"),
        _source("second", "http://b:1/jolokia"),
    ]
    assert confirmed(fixed, found) == {"first": "7"}
    assert confirmed(fixed, []) == {}
