"""Quotas as commands of Kafka's own tool, and as manifests of Strimzi."""

import shutil
import subprocess
from math import inf, nan
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.quotas.names import names, quota_sets

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import Entity, IpEntity, Manifests, QuotaSet, difference, kafka_configs, kafka_users
from quotascope.quotas.kafka_configs import bash_quoted

BASH = shutil.which("bash")
"""Every machine that runs `kafka-configs.sh` has it."""


@given(st.lists(names.filter(lambda name: "\0" not in name), min_size=1))
def test_bash_reads_back_every_word(words: list[str]) -> None:
    """As one argument each, whatever it holds, on one printable line, and in any locale."""
    assert BASH is not None
    line = " ".join(map(bash_quoted, words))
    assert line.isprintable()
    reported = subprocess.run(
        [BASH, "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, env={"LC_ALL": "C"}
    )
    assert reported.stdout.decode().split("\0")[:-1] == words


def test_one_command_for_each_entity() -> None:
    """Set and removed at once; every shape has its options."""
    old = QuotaSet({QuotaEntity("al ice"): {"request_percentage": 5.0}})
    values = {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}
    new = QuotaSet(
        {
            QuotaEntity("al ice"): values,
            QuotaEntity(DEFAULT, "$(c)"): {"request_percentage": 0.5},
            QuotaEntity(None, DEFAULT): {"controller_mutation_rate": 3.0},
            IpEntity("10.0.0.1"): {"connection_creation_rate": 4.0},
        }
    )
    commands = kafka_configs(difference(old, new), bootstrap_servers="b:9092", command_config="a b.conf")
    start = "kafka-configs.sh --bootstrap-server b:9092 --command-config 'a b.conf'"
    assert commands.left_out == ()
    assert commands.lines == (
        f"{start} --entity-type users --entity-default --entity-type clients --entity-name '$(c)' --alter --add-config request_percentage=0.5",
        f"{start} --entity-type users --entity-name 'al ice' --alter --add-config consumer_byte_rate=2048,producer_byte_rate=1024 --delete-config request_percentage",
        f"{start} --entity-type clients --entity-default --alter --add-config controller_mutation_rate=3",
        f"{start} --entity-type ips --entity-name 10.0.0.1 --alter --add-config connection_creation_rate=4",
    )


def test_a_name_that_no_argument_can_hold_is_reported() -> None:
    """Instead of a command for another entity."""
    new = QuotaSet({QuotaEntity("a\0b"): {"request_percentage": 5.0}})
    commands = kafka_configs(difference(QuotaSet(), new), bootstrap_servers="b:1")
    assert commands.lines == ()
    assert commands.left_out == (r'user "a\x00b": no argument can hold a NUL',)


def manifests(quotas: dict[Entity, dict[str, float]]) -> Manifests:
    return kafka_users(QuotaSet(quotas), cluster="my-cluster")


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def test_a_user_becomes_a_kafka_user() -> None:
    """With the fields of Strimzi's KafkaUserQuotas, and without authentication: the name is the user's."""
    values = {"producer_byte_rate": 1048576.0, "consumer_byte_rate": 2097152.0}
    values |= {"request_percentage": 55.0, "controller_mutation_rate": 2.5}
    made = manifests({QuotaEntity("team.orders"): values})
    assert made.left_out == ()
    rates = {"producerByteRate": 1048576, "consumerByteRate": 2097152}
    assert documents(made.text) == [
        {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaUser",
            "metadata": {"name": "team.orders", "labels": {"strimzi.io/cluster": "my-cluster"}},
            "spec": {"quotas": {**rates, "requestPercentage": 55, "controllerMutationRate": 2.5}},
        }
    ]


def test_the_user_of_a_certificate_keeps_its_name() -> None:
    """The operator puts CN= before the names of users with certificates only."""
    quotas = QuotaSet({QuotaEntity("CN=billing"): {"request_percentage": 5.0}})
    made = kafka_users(quotas, cluster="c", namespace="kafka", api_version="kafka.strimzi.io/v1beta2")
    (document,) = documents(made.text)
    assert document["apiVersion"] == "kafka.strimzi.io/v1beta2"
    assert document["metadata"]["name"] == "billing"
    assert document["metadata"]["namespace"] == "kafka"
    assert document["spec"]["authentication"] == {"type": "tls-external"}


PERCENT = {"request_percentage": 1.0}
NOT_WHOLE = "must be a whole number up to 2147483647, not"
BY_CLIENT, NO_NAME = "has no quotas by client-id", "no KafkaUser can have this name"


@pytest.mark.parametrize(
    ("entity", "values", "reason"),
    [
        (QuotaEntity("a", "c"), PERCENT, BY_CLIENT),
        (QuotaEntity("a", DEFAULT), PERCENT, BY_CLIENT),
        (QuotaEntity(None, "c"), PERCENT, BY_CLIENT),
        (IpEntity(DEFAULT), {"connection_creation_rate": 1.0}, "has no quotas by address"),
        (
            QuotaEntity(DEFAULT),
            {"producer_byte_rate": 7.0},
            "belongs in the Kafka resource, under spec.kafka.quotas: {type: kafka, producerByteRate: 7}",
        ),
        (QuotaEntity("Alice"), PERCENT, NO_NAME),
        (QuotaEntity("CN=a,O=b"), PERCENT, NO_NAME),
        (QuotaEntity("CN=" + "a" * 65), PERCENT, NO_NAME),
        (QuotaEntity("a"), {"request_percentage": 1.5}, f"requestPercentage {NOT_WHOLE} 1.5"),
        (QuotaEntity("a"), {"producer_byte_rate": 3e9}, f"producerByteRate {NOT_WHOLE} 3000000000"),
        (QuotaEntity("a"), {"request_percentage": inf}, "requestPercentage must be above 0 and finite, not Infinity"),
        (QuotaEntity("a"), {"controller_mutation_rate": nan}, "must be above 0 and finite, not nan"),
        (QuotaEntity("a"), {"producer_byte_rate": 0.0}, "must be above 0 and finite, not 0"),
        (QuotaEntity("a"), {"of_the_future": 1.0}, "a KafkaUser has no of_the_future"),
    ],
)
def test_what_strimzi_cannot_express_is_reported(entity: Entity, values: dict[str, float], reason: str) -> None:
    """In the result and in a comment of the file; nothing of it becomes a manifest."""
    made = manifests({entity: values})
    assert made.left_out == (f"{entity!s}: {made.left_out[0].partition(': ')[2]}",)
    assert reason in made.left_out[0]
    assert f"# left out: {made.left_out[0]}\n" in made.text
    assert documents(made.text) == []


def test_two_users_of_one_kafka_user_are_reported() -> None:
    """The operator would set the quotas of one and remove those of the other."""
    made = manifests({QuotaEntity("a"): PERCENT, QuotaEntity("CN=a"): PERCENT})
    assert documents(made.text) == []
    assert "can have the quotas of this user or of 'a', not both" in made.left_out[0]
    assert "can have the quotas of this user or of 'CN=a', not both" in made.left_out[1]


@given(quota_sets)
def test_hostile_names_break_nothing(quotas: QuotaSet) -> None:
    """Every entity is in a manifest or reported, and the stream holds nothing else."""
    made = kafka_users(quotas, cluster="c")
    assert all(line.isprintable() for line in made.text.splitlines())
    found = documents(made.text)
    assert len(found) + len(made.left_out) == len(quotas)
    assert {document["kind"] for document in found} <= {"KafkaUser"}
