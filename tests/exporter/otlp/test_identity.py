from __future__ import annotations

import socket

import pytest

from quotascope.exporter.exposition import own_version
from quotascope.exporter.otlp.encoding import resource_of, scope

URL = "http://127.0.0.1:9749"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine says of itself."""
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)


def test_who_sends() -> None:
    """Name, version, instance and cluster."""
    attributes = resource_of(URL, "prod", {}).attributes
    assert attributes["service.name"] == "quotascope"
    assert attributes["service.version"] == own_version()
    assert attributes["service.instance.id"] == f"{socket.gethostname()}:9749"
    assert attributes["kafka.cluster.alias"] == "prod"
    assert attributes["telemetry.sdk.language"] == "python"
    assert (scope().name, scope().version) == ("quotascope", own_version())


def test_no_cluster_without_a_name() -> None:
    """What is not configured is not guessed."""
    assert "kafka.cluster.alias" not in resource_of(URL, None, {}).attributes


def test_variables_and_then_the_configuration_go_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An instance can be called otherwise."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "quotas")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=a,team=kafka")
    attributes = resource_of(URL, None, {"service.instance.id": "b"}).attributes
    assert attributes["service.name"] == "quotas"
    assert attributes["service.instance.id"] == "b"
    assert attributes["team"] == "kafka"
