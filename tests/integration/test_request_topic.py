"""`quotascope request-topic` against real brokers: a mutation quota, an authorizer, and a topic that is there."""

import re
import shlex
import uuid
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.tools import run_tool
from tests.cluster.traffic import Traffic
from tests.cluster.users import USERS
from tests.commands import run
from tests.integration.eventually import eventually

pytestmark = pytest.mark.real

RATE = 5.0
"""Partitions/s; Kafka lets a bucket hold eleven seconds of it."""
OVERDRAWN = 85
"""Partitions that leave it six seconds in debt."""


def ended(cluster: Cluster, user: str, topic: str, *options: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, for a topic of a cluster, as some user."""
    sasl = ["--security-protocol", "SASL_PLAINTEXT", "--sasl-mechanism", "PLAIN", "--sasl-username"]
    where = ("--bootstrap-servers", cluster.sasl, *sasl, user)
    process = run("request-topic", topic, *where, *options, QUOTASCOPE_KAFKA__SASL__PASSWORD=USERS[user])
    return process.returncode, process.stdout, process.stderr


def new_topic() -> str:
    return f"request-log-{uuid.uuid4().hex[:12]}"


def overdraw(quotas: Quotas, traffic: Traffic, user: str) -> None:
    """Limit this user's topic changes, and spend more than there is."""
    entity = {"user": user, "client-id": "quotascope"}
    quotas.set((entity, {"controller_mutation_rate": RATE}))

    def refused() -> None:
        answer = traffic.mutate(user, "quotascope", OVERDRAWN, validate_only=True)
        assert answer.error == 89

    eventually(refused)


def retention(cluster: Cluster, topic: str) -> str:
    """Return the retention of a topic, as its broker reports it."""
    with closing(KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, ["retention.ms"])
        response: Any = admin.describe_configs([resource])
    return str(response["topic"][topic]["retention.ms"]["value"])


def test_topic_is_made_at_the_pace_of_a_quota(kafka: Cluster, quotas: Quotas, traffic: Traffic) -> None:
    """
    The topic is refused at first.

    A command that waits long enough gets it, one without time reports the rest of the throttle, and each wait is
    reported.
    """
    shape = ("--partitions", "3", "--replication-factor", "1", "--retention-hours", "48")

    def in_debt() -> tuple[str, re.Match[str]]:
        overdraw(quotas, traffic, "carol")
        topic = new_topic()
        code, out, err = ended(kafka, "carol", topic, *shape, "--wait-seconds", "1")
        assert (code, out) == (1, "")
        assert re.search(r"CreateTopics failed \(error 89\): .* \(wait \d+ ms\)", err)
        code, out, err = ended(kafka, "carol", topic, *shape)
        assert (code, out) == (0, f"{topic} was made: 3 partitions, 1 replica\n")
        reported = re.search(r"throttled this client for (\d+\.\d) s in all; .* repeated: (\d+)\n", err)
        assert reported is not None
        return topic, reported

    topic, reported = eventually(in_debt, seconds=60)  # a slow machine has paid its debt before it asks
    assert float(reported[1]) > 0
    assert int(reported[2]) > 0
    assert retention(kafka, topic) == "172800000"


def test_topic_that_is_there_or_cannot_be(kafka: Cluster, traffic: Traffic) -> None:
    """An existing topic is left as it is; other numbers are an error, and nothing is changed."""
    topic = traffic.topic(partitions=2)
    unchanged = (0, f"{topic} is there already: 2 partitions, 1 replica\n", "")
    assert ended(kafka, "carol", topic, "--retention-hours", "1") == unchanged
    code, out, err = ended(kafka, "carol", topic, "--partitions", "4")
    assert (code, out) == (1, "")
    assert f"topic {topic} is there with 2 partitions, not 4;" in err
    assert ended(kafka, "carol", topic, "--partitions", "2") == unchanged
    code, _, err = ended(kafka, "carol", new_topic(), "--replication-factor", "3")
    assert code == 1
    assert err.startswith("quotascope: CreateTopics failed (error 38): "), "Kafka says itself what it cannot do"


def test_the_advice_grants_what_is_missing(guarded_kafka: Cluster) -> None:
    """The advice grants the right to look for the topic, and then to make it."""
    topic = new_topic()
    arguments = (guarded_kafka, "mallory", topic, "--partitions", "2")
    for request, operation in (("Metadata", "Describe"), ("CreateTopics", "Create")):
        code, out, err = ended(*arguments)
        assert (code, out) == (1, "")
        assert f"{request} is not permitted; to grant it: " in err
        script, *grant = shlex.split(err.partition("to grant it: ")[2])
        assert grant[-4:] == ["--operation", operation, "--topic", topic]
        run_tool(guarded_kafka, script, *grant[grant.index("--add") :])
    granted = eventually(lambda: _done(ended(*arguments)))
    assert granted == f"{topic} was made: 2 partitions\n", "what was not reported is not printed"


def _done(result: tuple[int, str, str]) -> str:
    code, out, err = result
    assert code == 0, err
    return out
