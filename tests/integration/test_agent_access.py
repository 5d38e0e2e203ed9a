"""An agent behind TLS and a password."""

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.agents import JOLOKIA1_PASSWORD, JOLOKIA1_USER
from tests.cluster.cluster import Cluster
from tests.commands import run
from tests.integration.exporter import write_config

pytestmark = pytest.mark.real


TOKEN = base64.b64encode(f"{JOLOKIA1_USER}:{JOLOKIA1_PASSWORD}".encode()).decode()


def settings(kafka: Cluster, password: str | None, tls: str, **more: Any) -> dict[str, Any]:
    """A configuration that reads the Jolokia that wants HTTPS and a password."""
    trust: dict[str, Any] = {
        "trusted": {"tls": {"ca_file": str(kafka.certificates.ca)}},
        "unverified": {"tls": {"verify": False}},
        "unknown": {},
    }
    login = {} if password is None else {"basic_auth": {"username": JOLOKIA1_USER, "password": password}}
    guarded = {"dialect": "jolokia", "url": kafka.brokers[0].agents.jolokia1, "name": "guarded"}
    return {
        "sources": [{**guarded, **trust[tls], **login, **more}],
        "kafka": {"bootstrap_servers": kafka.admin},
        "log": {"format": "json"},
    }


@pytest.mark.parametrize(
    ("password", "tls", "more", "words"),
    [
        (JOLOKIA1_PASSWORD, "trusted", {}, "guarded jolokia up"),
        (None, "trusted", {"headers": {"Authorization": f"Basic {TOKEN}"}}, "guarded jolokia up"),
        (JOLOKIA1_PASSWORD, "unverified", {}, "guarded jolokia up"),
        (None, "trusted", {}, "guarded jolokia down|401|basic_auth"),
        ("wrong", "trusted", {}, "guarded jolokia down|401|basic_auth"),
        (JOLOKIA1_PASSWORD, "unknown", {}, "guarded jolokia down|certificate|ca_file"),
    ],
    ids=["password", "header", "not verified", "no password", "wrong password", "unknown authority"],
)
def test_what_opens_it_and_what_is_said_where_it_stays_closed(
    kafka: Cluster, tmp_path: Path, password: str | None, tls: str, more: dict[str, Any], words: str
) -> None:
    """A password, a header in its place, a certificate that is not verified; and which setting is wrong."""
    config = tmp_path / "quotascope.yaml"
    write_config(config, settings(kafka, password, tls, **more))
    done = run("status", "--config", config)
    shown = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == int("down" in words), shown
    assert [each for each in words.split("|") if each not in shown] == [], shown
    assert JOLOKIA1_PASSWORD not in shown
