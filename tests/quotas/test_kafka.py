"""Quotas as commands of Kafka's own tool, and as manifests of Strimzi."""

import shutil
import subprocess
from math import inf, nan
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.quotas.examples import ALICE, CONSUME, DEFAULT_USER, PERCENT, PRODUCE, names, quota_sets

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.quotas import Entity, IpEntity, Manifests, QuotaSet, difference, kafka_configs, kafka_users
from quotascope.quotas.kafka_configs import bash_quoted

BASH = shutil.which("bash") or "bash"
"""Every machine that runs `kafka-configs.sh` has it."""


@given(st.lists(names.filter(lambda name: "\0" not in name), min_size=1))
def test_bash_reads_back_every_word(words: list[str]) -> None:
    """Each word becomes one argument, on one printable line, with any content and in any locale."""
    line = " ".join(map(bash_quoted, words))
    assert line.isprintable()
    command = [BASH, "-c", f"printf '%s\\0' {line}"]
    reported = subprocess.run(command, capture_output=True, check=True, env={"LC_ALL": "C"})
    assert reported.stdout.decode().split("\0")[:-1] == words


def test_one_command_for_each_entity() -> None:
    """A command sets and removes at once; every shape of entity has its options."""
    old = QuotaSet({QuotaEntity("al ice"): {PERCENT: 5.0}})
    new = QuotaSet(
        {
            QuotaEntity("al ice"): {PRODUCE: 1024.0, CONSUME: 2048.0},
            QuotaEntity(DEFAULT, "$(c)"): {PERCENT: 0.5},
            QuotaEntity(None, DEFAULT): {"controller_mutation_rate": 3.0},
            IpEntity("10.0.0.1"): {"connection_creation_rate": 4.0},
        }
    )
    commands = kafka_configs(difference(old, new), bootstrap_servers="b:9092", command_config="a b.conf")
    start = "kafka-configs.sh --bootstrap-server b:9092 --command-config 'a b.conf' --entity-type"
    assert commands.lines == (
        (
            f"{start} users --entity-name 'al ice' --alter --add-config "
            "consumer_byte_rate=2048,producer_byte_rate=1024 --delete-config request_percentage"
        ),
        (
            f"{start} users --entity-default --entity-type clients --entity-name '$(c)' --alter --add-config "
            "request_percentage=0.5"
        ),
        f"{start} clients --entity-default --alter --add-config controller_mutation_rate=3",
        f"{start} ips --entity-name 10.0.0.1 --alter --add-config connection_creation_rate=4",
    )
    assert commands.left_out == ()


def test_a_name_that_no_argument_can_hold_is_reported() -> None:
    """The name is reported, instead of a command for another entity; the next one has its command."""
    new = QuotaSet({QuotaEntity("a\0b"): {PERCENT: 5.0}, ALICE: {PERCENT: 5.0}})
    commands = kafka_configs(difference(QuotaSet(), new), bootstrap_servers="b:1")
    assert commands.left_out == (r'user "a\x00b": no argument can hold a NUL',)
    (line,) = commands.lines
    assert line.startswith("kafka-configs.sh --bootstrap-server b:1 --entity-type users --entity-name alice --alter ")


def documents(manifests: Manifests) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(manifests.text) if document]


def test_a_user_becomes_a_kafka_user() -> None:
    """The manifest has the fields of Strimzi's KafkaUserQuotas, and no authentication: the name is the user's."""
    values = {PRODUCE: 1048576.0, CONSUME: 2097152.0, PERCENT: 55.0, "controller_mutation_rate": 2.5}
    manifests = kafka_users(QuotaSet({QuotaEntity("team.orders"): values}), cluster="my-cluster")
    assert manifests.left_out == ()
    rates = {"producerByteRate": 1048576, "consumerByteRate": 2097152}
    assert documents(manifests) == [
        {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaUser",
            "metadata": {"name": "team.orders", "labels": {"strimzi.io/cluster": "my-cluster"}},
            "spec": {"quotas": {**rates, "requestPercentage": 55, "controllerMutationRate": 2.5}},
        }
    ]


def test_the_user_of_a_certificate_keeps_its_name() -> None:
    """The operator puts CN= before the names of users with certificates only."""
    quotas = QuotaSet({QuotaEntity("CN=billing"): {PERCENT: 5.0}})
    (document,) = documents(kafka_users(quotas, cluster="c", namespace="kafka", api_version="kafka.strimzi.io/v1beta2"))
    assert document["apiVersion"] == "kafka.strimzi.io/v1beta2"
    assert document["metadata"] == {"name": "billing", "namespace": "kafka", "labels": {"strimzi.io/cluster": "c"}}
    assert document["spec"]["authentication"] == {"type": "tls-external"}


NOT_WHOLE, NOT_FINITE = "must be a whole number up to 2147483647, not", "must be above 0 and finite, not"
BY_CLIENT, NO_NAME = "a KafkaUser has no quotas by client-id", "no KafkaUser can have this name"
IN_KAFKA = "belongs in the Kafka resource, under spec.kafka.quotas: {type: kafka, producerByteRate: 7}"


@pytest.mark.parametrize(
    ("entity", "key", "value", "reason"),
    [
        (QuotaEntity("a", "c"), PERCENT, 1.0, BY_CLIENT),
        (QuotaEntity("a", DEFAULT), PERCENT, 1.0, BY_CLIENT),
        (QuotaEntity(None, "c"), PERCENT, 1.0, BY_CLIENT),
        (IpEntity(DEFAULT), "connection_creation_rate", 1.0, "a KafkaUser has no quotas by address"),
        (DEFAULT_USER, PRODUCE, 7.0, IN_KAFKA),
        (QuotaEntity("Alice"), PERCENT, 1.0, NO_NAME),
        (QuotaEntity("CN=a,O=b"), PERCENT, 1.0, NO_NAME),
        (QuotaEntity("CN=" + "a" * 65), PERCENT, 1.0, NO_NAME),
        (ALICE, PERCENT, 1.5, f"requestPercentage {NOT_WHOLE} 1.5"),
        (ALICE, PRODUCE, 3e9, f"producerByteRate {NOT_WHOLE} 3000000000"),
        (ALICE, PERCENT, inf, f"requestPercentage {NOT_FINITE} Infinity"),
        (ALICE, "controller_mutation_rate", nan, f"controllerMutationRate {NOT_FINITE} nan"),
        (ALICE, PRODUCE, 0.0, f"producerByteRate {NOT_FINITE} 0"),
        (ALICE, "of_the_future", 1.0, "a KafkaUser has no of_the_future"),
    ],
)
def test_what_strimzi_cannot_express_is_reported(entity: Entity, key: str, value: float, reason: str) -> None:
    """The quota is listed in the result and in a comment of the file; no part of it becomes a manifest."""
    manifests = kafka_users(QuotaSet({entity: {key: value}}), cluster="c")
    assert manifests.left_out == (f"{entity}: {reason}",)
    assert f"# left out: {entity}: {reason}\n" in manifests.text
    assert documents(manifests) == []


def test_two_users_of_one_kafka_user_are_reported() -> None:
    """The operator would set the quotas of one and remove those of the other."""
    manifests = kafka_users(QuotaSet({ALICE: {PERCENT: 1.0}, QuotaEntity("CN=alice"): {PERCENT: 1.0}}), cluster="c")
    reason = "the KafkaUser alice can have the quotas of this user or of"
    assert manifests.left_out == (
        f"user alice: {reason} 'CN=alice', not both",
        f"user CN=alice: {reason} 'alice', not both",
    )
    assert documents(manifests) == []


@given(quota_sets)
def test_hostile_names_break_nothing(quotas: QuotaSet) -> None:
    """Every entity is in a manifest or reported, and the stream holds nothing else."""
    manifests = kafka_users(quotas, cluster="c")
    assert all(line.isprintable() for line in manifests.text.splitlines())
    parsed = documents(manifests)
    assert len(parsed) + len(manifests.left_out) == len(quotas)
    assert {document["kind"] for document in parsed} <= {"KafkaUser"}
