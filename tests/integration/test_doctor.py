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
    found = settings_for(
        cluster.brokers, cluster.sasl, security_protocol="SASL_PLAINTEXT", sasl=sasl
    )
    return {**found, "server": {"address": "127.0.0.1", "port": 0}}


def examined(file: Path, code: int) -> dict[str, list[dict[str, str]]]:
    """What it finds, by check; it ends with this code."""
    shown = run("doctor", "--config", file, "--json", "--scrape-interval", "10s")
    assert (shown.returncode, shown.stderr) == (code, "")
    results: dict[str, list[dict[str, str]]] = {}
    for result in json.loads(shown.stdout)["results"]:
        results.setdefault(result["check"], []).append(result)
    return results


def verdicts(results: Mapping[str, list[dict[str, str]]], check: str) -> list[str]:
    """How the results of one check are."""
    return [result["verdict"] for result in results[check]]


def test_missing_permissions_are_told_apart(
    guarded_kafka: Cluster, tmp_path: Path
) -> None:
    """Each request is tried: one without rights is told both grants that it lacks, while the agent is fine."""
    file = tmp_path / "quotascope.yaml"
    write_config(file, settings(guarded_kafka, "mallory"))
    found = examined(file, 2)
    assert verdicts(found, "kafka") == ["fine"]
    assert found["kafka"][0]["text"].endswith("1 brokers, Kafka 4.3 or newer.")
    assert verdicts(found, "permissions") == ["broken"] * 3
    operations = [
        result["advice"].partition("--operation ")[2] for result in found["permissions"]
    ]
    assert operations == [
        "DescribeConfigs --cluster",
        "DescribeConfigs --cluster",
        "Describe --cluster",
    ]
    assert verdicts(found, "agents") == verdicts(found, "clocks") == ["fine"]
    assert "jolokia" in found["agents"][0]["text"]


def test_wrong_password_is_told_at_once(guarded_kafka: Cluster, tmp_path: Path) -> None:
    """It keeps nothing else from being looked at, and shows nowhere."""
    wrong = settings(guarded_kafka, "mallory")
    wrong["kafka"]["sasl"]["password"] = "s3cret"
    file = tmp_path / "quotascope.yaml"
    write_config(file, wrong)
    found = examined(file, 2)
    assert verdicts(found, "kafka") == ["broken"]
    assert "kafka.sasl" in found["kafka"][0]["advice"]
    assert "permissions" not in found
    assert verdicts(found, "agents") == ["fine"]
    assert "s3cret" not in json.dumps(found)


def test_everything_is_fine_for_who_may_read(
    guarded_kafka: Cluster, tmp_path: Path
) -> None:
    """All that is left is that nobody has a quota."""
    file = tmp_path / "quotascope.yaml"
    write_config(file, settings(guarded_kafka, "admin"))
    found = examined(file, 1)
    assert verdicts(found, "permissions") == ["fine"] * 3
    assert verdicts(found, "windows") == ["fine"]
    assert verdicts(found, "quotas") == ["look", "fine"]
    assert found["quotas"][0]["text"].startswith("No client quota is configured")


def test_other_credentials_count_after_sighup(
    guarded_kafka: Cluster, tmp_path: Path
) -> None:
    """The running exporter reads the limits as somebody else, with a connection of its own, and never stops to answer."""
    with serving(tmp_path / "serve", settings(guarded_kafka, "mallory")) as exporter:
        assert not list(exporter.page().series("kafka_quota_rules"))
        write_config(exporter.config, settings(guarded_kafka, "admin"))
        exporter.child.signal(signal.SIGHUP)

        def readable() -> None:
            changed = [
                line["changed"] for line in exporter.log("configuration was read again")
            ]
            assert changed == ["kafka.sasl.username, kafka.sasl.password"]
            page = exporter.page()
            assert page.value("quotascope_source_up") == 1
            assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") == 0

        eventually(readable)
        page = exporter.page()
        assert page.value("quotascope_config_last_reload_successful") == 1
