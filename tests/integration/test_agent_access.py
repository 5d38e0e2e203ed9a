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
    """Return a configuration that reads the Jolokia that wants HTTPS and a password."""
    node = kafka.brokers[0]
    guarded = {"dialect": "jolokia", "url": node.agents.jolokia1, "name": "guarded"}
    return {
        "sources": [{**guarded, **source}],
        "kafka": {"bootstrap_servers": kafka.admin},
        "log": {"format": "json"},
    }


def trust(kafka: Cluster, whom: str) -> dict[str, Any]:
    """Return settings that trust the authority of the agent's certificate, any certificate, or the system's alone."""
    settings_by_name: dict[str, dict[str, Any]] = {
        "authority": {"ca_file": str(kafka.certificates.ca)},
        "any": {"verify": False},
        "system": {},
    }
    return settings_by_name[whom]


def password(value: str = JOLOKIA1_PASSWORD) -> dict[str, Any]:
    return {"basic_auth": {"username": JOLOKIA1_USER, "password": value}}


def test_https_with_password(kafka: Cluster, tmp_path: Path) -> None:
    """The agent's numbers come through TLS and basic authentication."""
    configured = settings(kafka, tls=trust(kafka, "authority"), **password())
    with serving(tmp_path / "serve", configured) as exporter:
        page = exporter.page()
        assert page.value("quotascope_source_up", source="guarded") == 1
        assert page.value("quotascope_source_readings", source="guarded") > 0
        assert page.value("kafka_quota_delay_queue_size", quota_type="fetch") == 0
        assert JOLOKIA1_PASSWORD not in exporter.child.output()


TOKEN = base64.b64encode(f"{JOLOKIA1_USER}:{JOLOKIA1_PASSWORD}".encode()).decode()


@pytest.mark.parametrize(
    ("trusted", "login", "code", "words"),
    [
        ("authority", {"headers": {"Authorization": f"Basic {TOKEN}"}}, 0, ["guarded jolokia up"]),
        ("any", password(), 0, ["guarded jolokia up"]),
        ("authority", {}, 1, ["guarded jolokia down", "401", "basic_auth"]),
        ("authority", password("wrong"), 1, ["guarded jolokia down", "401", "basic_auth"]),
        ("system", password(), 1, ["guarded jolokia down", "certificate", "ca_file"]),
    ],
    ids=["a header", "no verification", "no password", "a wrong password", "an unknown authority"],
)
def test_status_says_what_is_missing(
    kafka: Cluster, tmp_path: Path, trusted: str, login: dict[str, Any], code: int, words: list[str]
) -> None:
    """
    A header takes the place of basic authentication, and a certificate need not be verified.

    Else the message names the refusal and the setting that helps.
    """
    config = tmp_path / "quotascope.yaml"
    write_config(config, settings(kafka, tls=trust(kafka, trusted), **login))
    process = run("status", "--config", config)
    output = " ".join((process.stdout + process.stderr).split())
    assert JOLOKIA1_PASSWORD not in output
    assert process.returncode == code, output
    assert [word for word in words if word not in output] == []
