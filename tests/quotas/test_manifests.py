"""Manifests of Strimzi are read as quotas, and other formats are refused by name with a remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.quotas import Entity, InvalidQuotas, QuotaSet, kafka_users, read_quotas

STREAM = """\
# of one cluster
---
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: east, namespace: brokers}
spec:
  kafka:
    quotas: {type: kafka, producerByteRate: 7, requestPercentage: 55}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x}
spec: {a: !of-another-tool {b: [[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]}}
---
apiVersion: v1
kind: List
items:
  - apiVersion: kafka.strimzi.io/v1beta2
    kind: KafkaUser
    metadata: {name: tls, namespace: users, labels: {strimzi.io/cluster: east, app: x}}
    spec:
      authentication: {type: tls}
      authorization: {type: simple, acls: [{resource: {type: topic, name: t}, operations: [Read]}]}
      quotas:
        producerByteRate: 1048576
        consumerByteRate: 2097152
        controllerMutationRate: 2.5
        requestPercentage: null
    status: {conditions: [{type: Ready}], username: CN=tls}
  - {apiVersion: v1, kind: Secret, metadata: {name: tls}, data: {a: YQ==}}
  - apiVersion: kafka.strimzi.io/v1beta2
    kind: KafkaUser
    metadata: {name: external, namespace: users, labels: {strimzi.io/cluster: east}}
    spec: {authentication: {type: tls-external}, quotas: {requestPercentage: 1}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: scram.user}
spec: {authentication: {type: scram-sha-512}, quotas: {requestPercentage: 2}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: plain}
spec: {quotas: {requestPercentage: 3}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: unlimited}
spec: {authentication: {type: tls}}
---
"""
QUOTAS = QuotaSet(
    {
        QuotaEntity(DEFAULT): {"producer_byte_rate": 7.0, "request_percentage": 55.0},
        QuotaEntity("CN=tls"): {
            "producer_byte_rate": 1048576.0,
            "consumer_byte_rate": 2097152.0,
            "controller_mutation_rate": 2.5,
        },
        QuotaEntity("CN=external"): {"request_percentage": 1.0},
        QuotaEntity("scram.user"): {"request_percentage": 2.0},
        QuotaEntity("plain"): {"request_percentage": 3.0},
    }
)


def written(folder: Path, text: str) -> Path:
    path = folder / "manifests.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_stream_with_other_kinds_between(tmp_path: Path) -> None:
    """Quotas are read by the name that each user has in Kafka; other kinds may hold anything."""
    assert read_quotas(written(tmp_path, STREAM)) == QUOTAS


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json(indent: int | str | None, tmp_path: Path) -> None:
    """The output of `kubectl get kafkausers,kafkas -o json` is read, also with tabs."""
    items = [document for document in yaml.safe_load_all(STREAM.replace("!of-another-tool ", "")) if document]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {}}, indent=indent)
    assert read_quotas(written(tmp_path, text)) == QUOTAS


names = st.from_regex(r"(CN=)?[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?(\.[a-z0-9]{1,4})?", fullmatch=True)
whole = st.integers(1, 2**31 - 1).map(float)
values = st.fixed_dictionaries(
    {},
    optional={
        "producer_byte_rate": whole,
        "consumer_byte_rate": whole,
        "request_percentage": whole,
        "controller_mutation_rate": st.floats(1e-6, 1e12),
    },
)


@given(st.dictionaries(names.map(QuotaEntity), values, max_size=5))
def test_what_is_exported_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, quotas: dict[Entity, dict[str, float]]
) -> None:
    """Exported manifests are read back as the same quotas, except for the listed ones that no manifest can have."""
    manifests = kafka_users(QuotaSet(quotas), cluster="east", namespace="users")
    left_out = {text.partition(": ")[0] for text in manifests.left_out}
    expected = QuotaSet({entity: values for entity, values in quotas.items() if str(entity) not in left_out})
    path = written(tmp_path_factory.mktemp("made"), manifests.text)
    if expected:
        assert read_quotas(path) == expected
    else:
        with pytest.raises(InvalidQuotas):
            read_quotas(path)


USER = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\n"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            f"{USER}metadata: {{name: a}}\nspec: {{quotas: {{producer_byte_rate: 1}}}}",
            ["line 4: unknown key 'producer_byte_rate' in spec.quotas; did you mean 'producerByteRate'?"],
        ),
        (
            f"{USER}metadata: {{name: a}}\nspec: {{quotas: {{producerByteRate: 1.5}}}}",
            ["line 4: spec.quotas.producerByteRate must be a whole number up to 2147483647, not 1.5"],
        ),
        (
            f"{USER}metadata: {{name: a}}\nspec: {{quotas: {{producerByteRate: 3e9}}}}",
            ["line 4: spec.quotas.producerByteRate must be a whole number up to 2147483647, not 3e9"],
        ),
        (
            f"{USER}metadata: {{name: a}}\nspec: {{quotas: {{producerByteRate: Infinity}}}}",
            ["line 4: spec.quotas.producerByteRate must be a whole number"],
        ),
        (
            f"{USER}metadata: {{name: a}}\nspec: {{quotas: {{requestPercentage: '5'}}}}",
            ["line 4: spec.quotas.requestPercentage must be a plain number"],
        ),
        (
            f"{USER}metadata: {{name: a}}\nspec:\n  quotas:\n    controllerMutationRate: 0",
            ["line 6: spec.quotas of user a: controller_mutation_rate must be greater than 0"],
        ),
        (
            f"{USER}metadata: {{name: a}}\nspec: {{authentication: {{type: oauth}}}}",
            ["line 4: spec.authentication has the type 'oauth', from which the name"],
        ),
        (
            f"{USER}metadata: {{name: a}}\nspec: {{authentication: {{password: x}}}}",
            ["line 4: spec.authentication has no type"],
        ),
        (f"{USER}metadata: {{name: a}}\nspec: {{quotas: [1]}}", ["line 4: spec.quotas must have keys and values"]),
        (
            f"{USER}metadata: {{name: {'a' * 65}}}\nspec: {{authentication: {{type: tls}}}}",
            ["line 1: metadata.name has more than 64 characters"],
        ),
        (f"{USER}metadata: {{name: 'User:a'}}", ["line 3: metadata.name 'User:a' is no name that Kubernetes takes"]),
        (f"{USER}spec: {{}}", ["line 1: this KafkaUser has no metadata.name"]),
        (
            f"{USER}metadata: {{name: a}}\n---\n{USER}metadata: {{name: a}}",
            ["line 5: user a is there already in line 1"],
        ),
        (
            (
                f"{USER}metadata: {{name: a, labels: {{strimzi.io/cluster: x}}}}\n---\n"
                f"{USER}metadata: {{name: b, labels: {{strimzi.io/cluster: y}}}}"
            ),
            ["line 7: the cluster 'x' (line 3) and 'y' (line 7)"],
        ),
        (
            f"{USER}metadata: {{name: a, namespace: x}}\n---\n{USER}metadata: {{name: b, namespace: y}}",
            ["line 7: the namespace 'x' (line 3) and 'y' (line 7)"],
        ),
        (
            (
                f"{USER}metadata: {{name: a, labels: {{strimzi.io/cluster: x}}}}\n---\n"
                f"apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {{name: y}}"
            ),
            ["line 5: the cluster 'x' (line 3) and 'y' (line 5)"],
        ),
        (
            f"{USER}metadata: {{name: a}}\n---\nquotas: []",
            ["line 5: expected a resource of Kubernetes with `apiVersion` and `kind`, as the others"],
        ),
        ("quotas: []\n---\nquotas: []", ["line 3: a second document; put all rules below one `quotas`"]),
        (
            (
                "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {name: y}\n"
                "spec: {kafka: {quotas: {type: strimzi, producerByteRate: 1}}}"
            ),
            ["line 4: spec.kafka.quotas of type 'strimzi' are settings of a plugin of the brokers"],
        ),
        (
            "apiVersion: kafka.banzaicloud.io/v1alpha1\nkind: KafkaUser\nmetadata: {name: a}",
            ["line 1: this KafkaUser is of 'kafka.banzaicloud.io/v1alpha1'"],
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_mapped_is_refused(text: str, problems: list[str], tmp_path: Path) -> None:
    """All problems of a manifest are reported by line and key."""
    path = written(tmp_path, text)
    with pytest.raises(InvalidQuotas) as caught:
        read_quotas(path)
    assert str(caught.value).startswith(str(path))
    assert len(caught.value.problems) == len(problems)
    for problem, beginning in zip(caught.value.problems, problems, strict=True):
        assert problem.startswith(beginning)


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        (
            (
                'context: east\nplatform:\n  kafka:\n    quotas:\n      - principal: "User:orders"\n'
                "        producer_byte_rate: 1024"
            ),
            "a topology of JulieOps",
        ),
        ("context: c\nprojects: [{name: p}]", "a topology of JulieOps"),
        (
            "apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuota\nspec: {}",
            "only KafkaClientQuota (Jikkou, kafka.jikkou.io/v1beta2)",
        ),
        (
            "apiVersion: aiven.io/v1alpha1\nkind: KafkaQuota\nspec: {}",
            "only KafkaQuota (Aiven's operator, aiven.io/v1alpha1)",
        ),
        (
            "apiVersion: gateway/v2\nkind: Interceptor\nmetadata: {name: x}",
            "only Interceptor (Conduktor Gateway, gateway/v2)",
        ),
        ("apiVersion: acme.example/v1\nkind: KafkaQuota\nspec: {}", "only KafkaQuota (acme.example/v1)"),
        ("- hosts: kafka\n  tasks:\n    - kafka_quotas: {entries: []}", "a playbook, role or inventory of Ansible"),
        (
            "- name: quotas\n  community.kafka.kafka_quotas:\n    entries: [{entity_type: user}]",
            "a playbook, role or inventory of Ansible",
        ),
        ('{"terraform_version": "1.9.0", "values": {}}', "a state or plan of Terraform"),
        ('{"resource": {"kafka_quota": {"a": {"entity_name": "x"}}}}', "a configuration of Terraform"),
        ('resource "kafka_quota" "a" {\n  entity_name = "x"\n}\n', "a configuration of Terraform"),
        (
            "Quota configs for user-principal 'alice' are producer_byte_rate=1024.0\n",
            "the output of kafka-configs.sh --describe",
        ),
        (
            (
                "Quota configs for the default client-id are request_percentage=5.0\n"
                "Quota configs for user-principal 'a', client-id 'b: c' are x=1\n"
            ),
            "the output of kafka-configs.sh --describe",
        ),
        (
            "kafka-configs.sh --bootstrap-server a:1 --entity-type users --entity-name x --alter\n",
            "commands of kafka-configs.sh",
        ),
        ('{"quotas": [{"entity": [{"name": "a", "type": "client-id"}], "values": []}]}', "Redpanda's rpk"),
        ('[{"entity": {}, "rule": "", "level": "", "hits": []}]', "the output of `quotascope quotas list --json`"),
        ('[{"entity": {}, "key": "", "old": 1, "new": 2}]', "the output of `quotascope quotas diff --json`"),
        ("- user: a\n  producer_byte_rate: 1", "a list of quotas without its key: put `quotas:` before it"),
        ("candidates: [{name: a}]", "candidates for `quotascope whatif`"),
    ],
)  # fmt: skip
def test_formats_of_other_tools_are_named(text: str, format_: str, tmp_path: Path) -> None:
    """A file in another tool's format is refused by its name, with a remedy."""
    with pytest.raises(InvalidQuotas) as caught:
        read_quotas(written(tmp_path, text))
    (problem,) = caught.value.problems
    assert format_ in problem
    assert any(word in problem for word in ("write its quotas", "export", "run them", "put `quotas:`", "give one"))


LISTED = """\
- {apiVersion: kafka.strimzi.io/v1, kind: KafkaUser, metadata: {name: a},
   spec: {authentication: {type: tls}, quotas: {producerByteRate: 6}}}
- {apiVersion: v1, kind: Secret, metadata: {name: a}}
- {apiVersion: kafka.strimzi.io/v1, kind: KafkaUser, metadata: {name: b},
   spec: {authentication: {type: scram-sha-512}, quotas: {requestPercentage: 5}}}
"""


def test_manifests_in_a_bare_list_are_read(tmp_path: Path) -> None:
    """A list as `jq .items` prints it is read; a rule of a quota file among the manifests is a problem."""
    path = tmp_path / "users.yaml"
    path.write_text(LISTED)
    assert read_quotas(path) == QuotaSet(
        {QuotaEntity("CN=a"): {"producer_byte_rate": 6.0}, QuotaEntity("b"): {"request_percentage": 5.0}}
    )
    path.write_text(f"{LISTED}- {{user: c, producer_byte_rate: 5}}\n")
    with pytest.raises(InvalidQuotas, match="line 6: expected a resource of Kubernetes"):
        read_quotas(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{- range .Values.users }}\nkind: KafkaUser\n{{ end }}\n", "is a template of Helm: render it first"),
        ("kind: KafkaUser\nmetadata: {name: {{ $name | quote }}}\n", "a template of Helm"),
        ("<!DOCTYPE html><html><body>Sign in</body></html>\n", "this is a web page"),
        ("\n<html>\n<form>\n", "this is a web page"),
    ],
)
def test_a_file_that_was_not_rendered_or_not_downloaded_is_told_what_it_is(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(text)
    with pytest.raises(InvalidQuotas, match=problem):
        read_quotas(path)
