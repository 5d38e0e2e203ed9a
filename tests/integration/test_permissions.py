"""
Exporter and commands on real brokers with an authorizer.

The documented ACLs are enough, SIGHUP mends credentials, and logins take tokens and tickets.
"""

import json
import re
import shlex
import signal
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import LoginKafka
from tests.cluster.logins import CLIENT_ID, CLIENT_SECRET, SCOPE
from tests.cluster.quotas import Quotas
from tests.cluster.tools import run_tool
from tests.cluster.users import USERS
from tests.commands import run, run_apart
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for, write_config

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs" / "start" / "permissions.md"


def settings(cluster: Cluster, user: str, password: str = "") -> dict[str, Any]:
    """Return the exporter's configuration as one of the users; the agent asks for no permission."""
    sasl = {"username": user, "password": password or USERS[user]}
    base = settings_for(cluster.brokers, cluster.sasl, security_protocol="SASL_PLAINTEXT", sasl=sasl)
    return {**base, "server": {"address": "127.0.0.1", "port": 0}}


def documented_acls() -> list[list[str]]:
    """Return the commands for reading in the documentation, without server and for mallory."""
    reading, changing, _ = PAGE.read_text().partition("## Changing quotas")
    assert changing
    commands = re.findall(r"^kafka-acls\.sh --bootstrap-server \S+ (.*)$", reading, re.MULTILINE)
    assert commands
    return [shlex.split(acl.replace("User:quotascope", "User:mallory")) for acl in commands]


def test_a_missing_permission_is_named_until_the_documented_acls_are_there(
    guarded_kafka: Cluster, tmp_path: Path
) -> None:
    """
    Log, landing page, `status` and `explain` name the request and the ACL; usage is served all the same, with HTTP 200.

    Once the documented commands ran, the running exporter reads everything, and says that it can.
    """
    missing = "DescribeClientQuotas is not permitted"
    grant = "--add --allow-principal User:mallory --operation DescribeConfigs --cluster"
    acls = documented_acls()
    with serving(tmp_path / "serve", settings(guarded_kafka, "mallory")) as exporter:
        page = exporter.page()
        assert page.value("quotascope_source_up") == 1
        assert page.value("quotascope_limits_refresh_errors_total") > 0
        assert not list(page.series("kafka_quota_rules"))
        (line,) = exporter.log("limits cannot be read")
        landing = exporter.get("/").text
        process = run("status", "--config", exporter.config)
        assert process.returncode == 1
        for text in (line["error"], landing, " ".join(process.stdout.split())):
            assert missing in text
            assert grant in text
        assert USERS["mallory"] not in exporter.child.output() + landing + process.stdout
        process = run("explain", "--config", exporter.config, "--user", "alice")
        assert (process.returncode, process.stdout) == (1, "")
        assert process.stderr.startswith(f"quotascope: {missing}")
        try:
            for acl in acls:
                run_tool(guarded_kafka, "kafka-acls.sh", *acl)
            eventually(lambda: _reads_everything(exporter))
        finally:
            for acl in acls:
                removal = (part for part in acl if part != "--add")
                run_tool(guarded_kafka, "kafka-acls.sh", "--remove", "--force", *removal)


def _reads_everything(exporter: Exporter) -> None:
    page = exporter.page()
    assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") == 0
    assert page.value("kafka_quota_request_capacity_threads", broker="1") == 11
    assert page.value("quotascope_limits_age_seconds") < 10
    (_,) = exporter.log("limits can be read")
    landing = exporter.get("/").text
    assert "is not permitted" not in landing
    assert "Not known" not in landing


@pytest.fixture
def findings(guarded_kafka: Cluster, tmp_path: Path) -> Any:
    """Return a function that runs the doctor for a user, and returns its findings by check; it checks the exit code."""

    def examined(code: int, user: str, password: str = "") -> dict[str, list[dict[str, str]]]:
        file = tmp_path / "quotascope.yaml"
        write_config(file, settings(guarded_kafka, user, password))
        process = run("doctor", "--config", file, "--json", "--scrape-interval", "10s")
        assert (process.returncode, process.stderr) == (code, "")
        assert not password or password not in process.stdout
        results: dict[str, list[dict[str, str]]] = {}
        for result in json.loads(process.stdout)["findings"]:
            results.setdefault(result["check"], []).append(result)
        return results

    return examined


def severities(results: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {
        check: " ".join(result["severity"] for result in results_of_check)
        for check, results_of_check in results.items()
    }


def test_missing_permissions_are_separate_findings(findings: Any) -> None:
    """Each request is tried: a user without rights gets the grants that it lacks, while the agent is read."""
    by_check = findings(2, "mallory")
    expected = {"kafka": "ok ok", "permissions": "error error error", "agents": "ok", "clocks": "ok"}
    assert severities(by_check).items() >= expected.items()
    assert by_check["kafka"][0]["text"].endswith("1 broker, Kafka 4.3.")
    operations = [result["advice"].partition("--operation ")[2] for result in by_check["permissions"]]
    assert operations == ["DescribeConfigs --cluster", "", "Describe --cluster"]
    assert by_check["permissions"][1]["advice"] == "The same command grants it as for DescribeClientQuotas."
    assert "jolokia" in by_check["agents"][0]["text"]


def test_a_wrong_password_is_found_at_once(findings: Any) -> None:
    """Everything else is examined all the same, and the password shows nowhere."""
    by_check = findings(2, "mallory", "s3cret")
    assert severities(by_check).items() >= {"kafka": "error", "agents": "ok"}.items()
    assert "kafka.sasl" in by_check["kafka"][0]["advice"]
    assert "permissions" not in by_check


def test_everything_is_in_order_for_a_user_with_rights(findings: Any) -> None:
    """The only finding is that no quota is configured."""
    by_check = findings(1, "admin")
    expected = {"permissions": "ok ok ok", "windows": "ok", "quotas": "warning ok"}
    assert severities(by_check).items() >= expected.items()
    assert by_check["quotas"][0]["text"].startswith("No client quota is configured")


def test_other_credentials_count_after_sighup(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """The running exporter reads the limits as another user, by a new connection, and never stops to answer."""
    with serving(tmp_path / "serve", settings(guarded_kafka, "mallory")) as exporter:
        assert not list(exporter.page().series("kafka_quota_rules"))
        write_config(exporter.config, settings(guarded_kafka, "admin"))
        exporter.child.signal(signal.SIGHUP)

        def readable() -> None:
            changed = [line["changed"] for line in exporter.log("configuration was read again")]
            assert changed == ["kafka.sasl.username, kafka.sasl.password"]
            page = exporter.page()
            assert page.value("quotascope_source_up") == 1
            assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") == 0

        eventually(readable)
        page = exporter.page()
        assert page.value("quotascope_config_last_reload_successful") == 1


def oauth(kafka: LoginKafka, folder: Path, **changes: object) -> dict[str, Any]:
    """Return a configuration that names the cluster and the issuer, and no node."""
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
    base = settings_for([], kafka.cluster.sasl, security_protocol="SASL_PLAINTEXT", sasl=sasl)
    agent = kafka.cluster.nodes[1].agents.jolokia.replace("127.0.0.1", "{host}")
    return {**base, "discovery": {"kafka": {"url": agent}}, "server": {"address": "127.0.0.1", "port": 0}}


def examined(file: Path) -> Mapping[str, Any]:
    """Return the doctor's findings about Kafka; assert that the secret is not in them."""
    process = run_apart("doctor", "--config", file, "--json", "--scrape-interval", "10s")
    assert CLIENT_SECRET not in process.stdout + process.stderr
    findings = json.loads(process.stdout)["findings"]
    return {check: [finding for finding in findings if finding["check"] == check] for check in ("kafka", "permissions")}


def test_every_command_takes_tokens_of_an_issuer(login_kafka: LoginKafka, tmp_path: Path) -> None:
    """One section of the file gives each command its token: to check, set and list quotas, diagnose and serve."""
    file = tmp_path / "quotascope.yaml"
    write_config(file, oauth(login_kafka, tmp_path))
    checked = run("config", "check", file)
    assert (checked.returncode, checked.stderr) == (0, "")
    entity = ("--user", "alice", "producer_byte_rate=4096")
    with closing(Quotas(login_kafka.cluster.connection())) as quotas:
        try:
            changed = run("quotas", "set", "--config", file, *entity, "--apply")
            assert (changed.returncode, changed.stderr) == (0, "")
            listed = run("quotas", "list", "--config", file)
            assert "alice" in listed.stdout
            by_check = examined(file)
            assert [finding["severity"] for finding in by_check["permissions"]] == ["ok"] * 3
            with serving(tmp_path / "serve", oauth(login_kafka, tmp_path)) as exporter:
                page = exporter.page()
                rules = page.value("kafka_quota_rules", quota_key="producer_byte_rate")
                nodes = page.value("quotascope_discovered_sources", discovery="kafka")
                assert (rules, nodes) == (1, 1)
                assert CLIENT_SECRET not in str(exporter.log())
        finally:
            quotas.clear()
    for process in (checked, changed, listed):
        assert CLIENT_SECRET not in process.stdout + process.stderr


def test_flags_name_the_other_logins(login_kafka: LoginKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that prints a token and a keytab work without a configuration file."""
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
    """The doctor names an issuer that is down and a missing ticket, with the setting and the remedy."""
    monkeypatch.setenv("KRB5_CONFIG", str(login_kafka.realm.config))
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:nothing")
    file = tmp_path / "quotascope.yaml"
    settings = oauth(login_kafka, tmp_path, token_url="https://127.0.0.1:1/token")
    for sasl, text, advice in (
        (
            settings["kafka"]["sasl"],
            "cannot log in: the token endpoint https://127.0.0.1:1/token: connection refused",
            "Kafka itself was reached",
        ),
        ({"mechanism": "GSSAPI"}, "cannot log in: Kerberos: No Kerberos credentials available", "Check kafka.sasl"),
    ):  # fmt: skip
        settings["kafka"]["sasl"] = sasl
        write_config(file, settings)
        (finding,) = examined(file)["kafka"]
        assert finding["severity"] == "error"
        assert finding["text"].startswith(text)
        assert advice in finding["advice"]
