"""What `quotascope doctor` finds on a real broker with an authorizer, and what SIGHUP mends."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.users import USERS
from tests.integration.eventually import eventually
from tests.integration.exporter import run, serving, settings_for, write_config

pytestmark = pytest.mark.real


def settings(cluster: Cluster, user: str) -> dict[str, Any]:
    """The exporter as one of the users; the agent asks for no permission."""
    sasl = {"username": user, "password": USERS[user]}
    found = settings_for(cluster.brokers, cluster.sasl, security_protocol="SASL_PLAINTEXT", sasl=sasl)
    return {**found, "server": {"address": "127.0.0.1", "port": 0}}


def examined(file: Path, code: int) -> dict[str, list[dict[str, str]]]:
    """What it finds, by check; it ends with this code."""
    shown = run("doctor", "--config", file, "--json", "--scrape-interval", "10s")
    assert (shown.returncode, shown.stderr) == (code, "")
    results: dict[str, list[dict[str, str]]] = {}
    for result in json.loads(shown.stdout)["findings"]:
        results.setdefault(result["check"], []).append(result)
    return results


def severities(results: Mapping[str, list[dict[str, str]]], check: str) -> list[str]:
    """How bad the findings of one check are."""
    return [result["severity"] for result in results[check]]


def test_missing_permissions_are_separate_findings(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """Each request is tried: a user without rights gets the grants that it lacks, while the agent is read."""
    file = tmp_path / "quotascope.yaml"
    write_config(file, settings(guarded_kafka, "mallory"))
    found = examined(file, 2)
    assert severities(found, "kafka") == ["ok"]
    assert found["kafka"][0]["text"].endswith("1 brokers, Kafka 4.3 or newer.")
    assert severities(found, "permissions") == ["error"] * 3
    operations = [result["advice"].partition("--operation ")[2] for result in found["permissions"]]
    assert operations == [
        "DescribeConfigs --cluster",
        "DescribeConfigs --cluster",
        "Describe --cluster",
    ]
    assert severities(found, "agents") == severities(found, "clocks") == ["ok"]
    assert "jolokia" in found["agents"][0]["text"]


def test_a_wrong_password_is_found_at_once(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """It keeps nothing else from being looked at, and shows nowhere."""
    wrong = settings(guarded_kafka, "mallory")
    wrong["kafka"]["sasl"]["password"] = "s3cret"
    file = tmp_path / "quotascope.yaml"
    write_config(file, wrong)
    found = examined(file, 2)
    assert severities(found, "kafka") == ["error"]
    assert "kafka.sasl" in found["kafka"][0]["advice"]
    assert "permissions" not in found
    assert severities(found, "agents") == ["ok"]
    assert "s3cret" not in json.dumps(found)


def test_everything_is_in_order_for_a_user_with_rights(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """What is left is that no quota is configured."""
    file = tmp_path / "quotascope.yaml"
    write_config(file, settings(guarded_kafka, "admin"))
    found = examined(file, 1)
    assert severities(found, "permissions") == ["ok"] * 3
    assert severities(found, "windows") == ["ok"]
    assert severities(found, "quotas") == ["warning", "ok"]
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
