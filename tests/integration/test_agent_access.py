"""An agent behind TLS and a password."""

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.agents import JOLOKIA1_PASSWORD, JOLOKIA1_USER
from tests.cluster.cluster import Cluster
from tests.commands import run
from tests.integration.exporter import serving, write_config

pytestmark = pytest.mark.real


def settings(kafka: Cluster, **source: Any) -> dict[str, Any]:
    """A configuration that reads the Jolokia that wants HTTPS and a password."""
    node = kafka.brokers[0]
    guarded = {"dialect": "jolokia", "url": node.agents.jolokia1, "name": "guarded"}
    return {
        "sources": [{**guarded, **source}],
        "kafka": {"bootstrap_servers": kafka.admin},
        "log": {"format": "json"},
    }


def trusting(kafka: Cluster) -> dict[str, Any]:
    """Trust in the authority of the agent's certificate."""
    return {"tls": {"ca_file": str(kafka.certificates.ca)}}


def password(value: str = JOLOKIA1_PASSWORD) -> dict[str, Any]:
    """Basic authentication."""
    return {"basic_auth": {"username": JOLOKIA1_USER, "password": value}}


def status(folder: Path, configured: dict[str, Any]) -> tuple[int, str]:
    """Exit code and output of `quotascope status`."""
    config = folder / "quotascope.yaml"
    write_config(config, configured)
    shown = run("status", "--config", config)
    assert JOLOKIA1_PASSWORD not in shown.stdout + shown.stderr
    return shown.returncode, " ".join((shown.stdout + shown.stderr).split())


def test_https_with_password(kafka: Cluster, tmp_path: Path) -> None:
    """The agent's numbers come through TLS and basic authentication."""
    configured = settings(kafka, **trusting(kafka), **password())
    with serving(tmp_path / "serve", configured) as exporter:
        page = exporter.page()
        assert page.value("quotascope_source_up", source="guarded") == 1
        assert page.value("quotascope_source_readings", source="guarded") > 0
        assert page.value("kafka_quota_delay_queue_size", quota_type="fetch") == 0
        assert JOLOKIA1_PASSWORD not in exporter.child.output()


def test_header_as_configured(kafka: Cluster, tmp_path: Path) -> None:
    """A custom header is sent: here one that makes up for the missing basic authentication."""
    token = base64.b64encode(f"{JOLOKIA1_USER}:{JOLOKIA1_PASSWORD}".encode()).decode()
    headers = {"headers": {"Authorization": f"Basic {token}"}}
    code, shown = status(tmp_path, settings(kafka, **trusting(kafka), **headers))
    assert (code, "guarded jolokia up" in shown) == (0, True), shown


@pytest.mark.parametrize("credentials", [{}, password("wrong")], ids=["none", "wrong"])
def test_wrong_credentials_are_called_so(kafka: Cluster, tmp_path: Path, credentials: dict[str, Any]) -> None:
    """Without the right password the source is down, and the message says that it was refused."""
    code, shown = status(tmp_path, settings(kafka, **trusting(kafka), **credentials))
    assert (code, "guarded jolokia down" in shown) == (1, True), shown
    assert "401" in shown
    assert "basic_auth" in shown


def test_unknown_authority_is_called_so(kafka: Cluster, tmp_path: Path) -> None:
    """A certificate of an authority that is not trusted ends the connection, and the message says which setting helps."""
    code, shown = status(tmp_path, settings(kafka, **password()))
    assert (code, "guarded jolokia down" in shown) == (1, True), shown
    assert "certificate" in shown
    assert "ca_file" in shown


def test_certificate_need_not_be_verified(kafka: Cluster, tmp_path: Path) -> None:
    """`verify: false` reads an agent whose certificate no one vouches for."""
    unverified = {"tls": {"verify": False}}
    code, shown = status(tmp_path, settings(kafka, **unverified, **password()))
    assert (code, "guarded jolokia up" in shown) == (0, True), shown
