"""What the exporter and the commands say on real brokers with an authorizer: that the documented ACLs are enough, what SIGHUP mends, and logins by tokens and tickets."""

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

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"


def settings(cluster: Cluster, user: str, password: str = "") -> dict[str, Any]:
    """The exporter as one of the users; the agent asks for no permission."""
    sasl = {"username": user, "password": password or USERS[user]}
    found = settings_for(cluster.brokers, cluster.sasl, security_protocol="SASL_PLAINTEXT", sasl=sasl)
    return {**found, "server": {"address": "127.0.0.1", "port": 0}}


def documented_acls() -> list[list[str]]:
    """The commands for reading in the documentation, without server and for mallory."""
    reading, changing, _ = PAGE.read_text().partition("## Changing quotas")
    assert changing
    found = re.findall(r"^kafka-acls\.sh --bootstrap-server \S+ (.*)$", reading, re.MULTILINE)
    assert found
    return [shlex.split(acl.replace("User:quotascope", "User:mallory")) for acl in found]


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
        shown = run("status", "--config", exporter.config)
        assert shown.returncode == 1
        for text in (line["error"], landing, " ".join(shown.stdout.split())):
            assert missing in text
            assert grant in text
        assert USERS["mallory"] not in exporter.child.output() + landing + shown.stdout
        shown = run("explain", "--config", exporter.config, "--user", "alice")
        assert (shown.returncode, shown.stdout) == (1, "")
        assert shown.stderr.startswith(f"quotascope: {missing}")
        try:
            for acl in acls:
                run_tool(guarded_kafka, "kafka-acls.sh", *acl)
            eventually(lambda: _reads_everything(exporter))
        finally:
            for acl in acls:
                left = (part for part in acl if part != "--add")
                run_tool(guarded_kafka, "kafka-acls.sh", "--remove", "--force", *left)


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
    """What the doctor finds for a user, by check; it ends with this code."""

    def examined(code: int, user: str, password: str = "") -> dict[str, list[dict[str, str]]]:
        file = tmp_path / "quotascope.yaml"
        write_config(file, settings(guarded_kafka, user, password))
        shown = run("doctor", "--config", file, "--json", "--scrape-interval", "10s")
        assert (shown.returncode, shown.stderr) == (code, "")
        assert not password or password not in shown.stdout
        results: dict[str, list[dict[str, str]]] = {}
        for result in json.loads(shown.stdout)["findings"]:
            results.setdefault(result["check"], []).append(result)
        return results

    return examined


def severities(results: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check: " ".join(each["severity"] for each in found) for check, found in results.items()}


def test_missing_permissions_are_separate_findings(findings: Any) -> None:
    """Each request is tried: a user without rights gets the grants that it lacks, while the agent is read."""
    found = findings(2, "mallory")
    expected = {"kafka": "ok", "permissions": "error error error", "agents": "ok", "clocks": "ok"}
    assert severities(found).items() >= expected.items()
    assert found["kafka"][0]["text"].endswith("1 brokers, Kafka 4.3 or newer.")
    operations = [result["advice"].partition("--operation ")[2] for result in found["permissions"]]
    assert operations == ["DescribeConfigs --cluster", "DescribeConfigs --cluster", "Describe --cluster"]
    assert "jolokia" in found["agents"][0]["text"]


def test_a_wrong_password_is_found_at_once(findings: Any) -> None:
    """It keeps nothing else from being looked at, and shows nowhere."""
    found = findings(2, "mallory", "s3cret")
    assert severities(found).items() >= {"kafka": "error", "agents": "ok"}.items()
    assert "kafka.sasl" in found["kafka"][0]["advice"]
    assert "permissions" not in found


def test_everything_is_in_order_for_a_user_with_rights(findings: Any) -> None:
    """What is left is that no quota is configured."""
    found = findings(1, "admin")
    expected = {"permissions": "ok ok ok", "windows": "ok", "quotas": "warning ok"}
    assert severities(found).items() >= expected.items()
    assert found["quotas"][0]["text"].startswith("No client quota is configured")


def test_other_credentials_count_after_sighup(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """The running exporter reads the limits as another user, with a connection of its own, and never stops to answer."""
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
