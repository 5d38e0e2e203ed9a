"""What the exporter says when its user may not read the quotas, and that the documented ACLs are enough."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.tools import run_tool
from tests.cluster.users import USERS
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, run, serving, settings_for

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"


def settings(cluster: Cluster, user: str) -> dict[str, Any]:
    """The exporter as one of the users; the agent asks for no permission."""
    sasl = {"username": user, "password": USERS[user]}
    return settings_for(cluster.brokers, cluster.sasl, security_protocol="SASL_PLAINTEXT", sasl=sasl)


@pytest.fixture
def unprivileged(guarded_kafka: Cluster, tmp_path: Path) -> Iterator[Exporter]:
    """An exporter whose user has no rights."""
    with serving(tmp_path / "serve", settings(guarded_kafka, "mallory")) as exporter:
        yield exporter


def documented_acls() -> list[list[str]]:
    """The commands for reading in the documentation, without server and for mallory."""
    reading, changing, _ = PAGE.read_text().partition("## Changing quotas")
    assert changing
    found = re.findall(r"^kafka-acls\.sh --bootstrap-server \S+ (.*)$", reading, re.MULTILINE)
    return [shlex.split(acl.replace("User:quotascope", "User:mallory")) for acl in found]


def test_missing_permission_is_named(unprivileged: Exporter) -> None:
    """Log, landing page and `status` name the request and the ACL; usage is served all the same, with HTTP 200."""
    page = unprivileged.page()
    assert page.value("quotascope_source_up") == 1
    assert page.value("quotascope_limits_refresh_errors_total") > 0
    assert not list(page.series("kafka_quota_rules"))
    missing = "DescribeClientQuotas is not permitted"
    grant = "--add --allow-principal User:mallory --operation DescribeConfigs --cluster"
    (line,) = unprivileged.log("limits cannot be read")
    assert missing in line["error"]
    assert grant in line["error"]
    landing = unprivileged.get("/").text
    assert missing in landing
    assert grant in landing
    shown = run("status", "--config", unprivileged.config)
    assert shown.returncode == 1
    assert missing in _flat(shown.stdout)
    assert grant in _flat(shown.stdout)
    assert USERS["mallory"] not in unprivileged.child.output() + landing + shown.stdout


def test_explain_names_it_too(unprivileged: Exporter) -> None:
    """`explain` cannot answer without the permission, says so in one line, and ends with 1."""
    shown = run("explain", "--config", unprivileged.config, "--user", "alice")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith("quotascope: DescribeClientQuotas is not permitted")


def test_documented_acls_are_enough(guarded_kafka: Cluster, unprivileged: Exporter) -> None:
    """Once the documented commands ran, the running exporter reads everything, and says that it can."""
    acls = documented_acls()
    assert acls
    try:
        for acl in acls:
            run_tool(guarded_kafka, "kafka-acls.sh", *acl)
        eventually(lambda: _reads_everything(unprivileged))
    finally:
        for acl in acls:
            removed = [
                "--remove",
                "--force",
                *(part for part in acl if part != "--add"),
            ]
            run_tool(guarded_kafka, "kafka-acls.sh", *removed)


def _reads_everything(exporter: Exporter) -> None:
    page = exporter.page()
    assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") == 0
    assert page.value("kafka_quota_request_capacity_threads", broker="1") == 11
    assert page.value("quotascope_limits_age_seconds") < 10
    (_,) = exporter.log("limits can be read")
    landing = exporter.get("/").text
    assert "is not permitted" not in landing
    assert "Not known" not in landing


def _flat(text: str) -> str:
    return " ".join(text.split())
