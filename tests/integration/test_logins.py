"""The commands as a user without a password runs them: by an issuer's tokens, a command that prints one, and a keytab."""

import json
import shlex
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.fixtures import LoginKafka
from tests.cluster.logins import CLIENT_ID, CLIENT_SECRET, SCOPE
from tests.cluster.quotas import Quotas
from tests.commands import run, run_apart
from tests.integration.exporter import serving, settings_for, write_config

pytestmark = pytest.mark.real


def oauth(kafka: LoginKafka, folder: Path, **changes: object) -> dict[str, Any]:
    """A configuration that names the cluster and the issuer, and no node."""
    secret = folder / "client-secret"
    secret.write_text(CLIENT_SECRET + "\n")
    sasl = {
        "mechanism": "OAUTHBEARER",
        "token_url": kafka.issuer.token_url,
        "client_id": CLIENT_ID,
        "client_secret_file": str(secret),
        "scope": SCOPE,
        "token_ca_file": str(kafka.issuer_ca),
        **changes,
    }
    found = settings_for([], kafka.cluster.sasl, security_protocol="SASL_PLAINTEXT", sasl=sasl)
    agent = kafka.cluster.nodes[1].agents.jolokia.replace("127.0.0.1", "{host}")
    return {**found, "discovery": {"kafka": {"url": agent}}, "server": {"address": "127.0.0.1", "port": 0}}


def examined(file: Path) -> Mapping[str, Any]:
    """What the doctor says of Kafka, and that the secret is not in it."""
    shown = run_apart("doctor", "--config", file, "--json", "--scrape-interval", "10s")
    assert CLIENT_SECRET not in shown.stdout + shown.stderr
    findings = json.loads(shown.stdout)["findings"]
    return {check: [each for each in findings if each["check"] == check] for check in ("kafka", "permissions")}


def test_every_command_takes_tokens_of_an_issuer(login_kafka: LoginKafka, tmp_path: Path) -> None:
    """One section of the file is enough to check it, to set and list quotas, for the doctor, and to serve limits of found nodes."""
    file = tmp_path / "quotascope.yaml"
    write_config(file, oauth(login_kafka, tmp_path))
    checked = run("config", "check", file)
    assert (checked.returncode, checked.stderr) == (0, "")
    entity = ("--user", "alice", "producer_byte_rate=4096")
    with closing(Quotas(login_kafka.cluster.connection())) as quotas:
        try:
            done = run("quotas", "set", "--config", file, *entity, "--apply")
            assert (done.returncode, done.stderr) == (0, "")
            listed = run("quotas", "list", "--config", file)
            assert "alice" in listed.stdout
            found = examined(file)
            assert [each["severity"] for each in found["permissions"]] == ["ok"] * 3
            with serving(tmp_path / "serve", oauth(login_kafka, tmp_path)) as exporter:
                page = exporter.page()
                rules = page.value("kafka_quota_rules", quota_key="producer_byte_rate")
                nodes = page.value("quotascope_discovered_sources", discovery="kafka")
                assert (rules, nodes) == (1, 1)
                assert CLIENT_SECRET not in str(exporter.log())
        finally:
            quotas.clear()
    for each in (checked, done, listed):
        assert CLIENT_SECRET not in each.stdout + each.stderr


def test_flags_name_the_other_logins(login_kafka: LoginKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that prints a token, a keytab: without a configuration file."""
    monkeypatch.setenv("KRB5_CONFIG", str(login_kafka.realm.config))
    token = tmp_path / "my token"
    token.write_text(login_kafka.issuer.token())
    for login in (
        ("OAUTHBEARER", "--sasl-token-command", shlex.join(["cat", str(token)])),
        ("GSSAPI", "--sasl-keytab", str(login_kafka.realm.keytab)),
    ):
        listed = run_apart(
            *("quotas", "list", "--bootstrap-servers", login_kafka.cluster.sasl),
            *("--security-protocol", "SASL_PLAINTEXT", "--sasl-mechanism", *login),
        )
        assert (listed.returncode, listed.stderr) == (0, "")


def test_the_doctor_says_what_a_login_lacks(
    login_kafka: LoginKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An issuer that is down, a ticket that is not there: what, where, what to do."""
    monkeypatch.setenv("KRB5_CONFIG", str(login_kafka.realm.config))
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:nothing")
    file = tmp_path / "quotascope.yaml"
    settings = oauth(login_kafka, tmp_path, token_url="https://127.0.0.1:1/token")
    for sasl, text, advice in (
        (settings["kafka"]["sasl"], "cannot log in: the token endpoint https://127.0.0.1:1/token: connection refused", "Kafka itself was reached"),
        ({"mechanism": "GSSAPI"}, "cannot log in: Kerberos: No Kerberos credentials available", "Check kafka.sasl"),
    ):  # fmt: skip
        settings["kafka"]["sasl"] = sasl
        write_config(file, settings)
        (finding,) = examined(file)["kafka"]
        assert finding["severity"] == "error"
        assert finding["text"].startswith(text)
        assert advice in finding["advice"]
