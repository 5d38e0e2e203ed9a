"""Addresses of Kafka in a configuration."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from quotascope.exporter.config.sources import Server

SERVER: TypeAdapter[str] = TypeAdapter(Server)


@pytest.mark.parametrize("server", ["a:1", "broker-1:9092", "[::1]:65535"])
def test_host_and_port(server: str) -> None:
    """From port 1 to 65535."""
    assert SERVER.validate_python(server) == server


@pytest.mark.parametrize(
    "server",
    ["", "a", ":9092", "a:", "a:0", "a:65536", "a:-1", "a:1.5", "a:x", "a:1:", "9092"],
)
def test_anything_else_is_refused(server: str) -> None:
    """A host without a port, a port without a host, and ports that TCP does not have."""
    with pytest.raises(ValidationError, match="expected HOST:PORT"):
        SERVER.validate_python(server)
