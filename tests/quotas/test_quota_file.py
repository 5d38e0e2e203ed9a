"""Quotas in files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from tests.quotas.names import names, quota_sets

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import InvalidQuotas, IpEntity, QuotaSet, load, quotas_in, quotas_yaml, read_quotas, rules_of
from quotascope.quotas.quota_file import quoted

ALL_SHAPES = """
quotas:
  - user: alice
    client-id: app1
    producer_byte_rate: 1_000
    consumer_byte_rate: 2e3
  - {user: alice, client-id: <default>, request_percentage: 50.5}
  - {user: alice, controller_mutation_rate: 3}
  - {user: <default>, client-id: app1, request_percentage: 1}
  - {user: <default>, client-id: <default>, request_percentage: 2}
  - {user: <default>, request_percentage: 3}
  - {client-id: app1, request_percentage: 4}
  - {client-id: <default>, request_percentage: 5}
  - {ip: 10.0.0.1, connection_creation_rate: 6}
  - {ip: <default>, connection_creation_rate: 7}
  - {user: {name: <default>}, request_percentage: 8}
"""


def problems(text: str) -> list[str]:
    """What is wrong with a file."""
    with pytest.raises(InvalidQuotas) as caught:
        quotas_in(load(text, "q.yaml"), "q.yaml")
    return list(caught.value.problems)


def test_every_shape_of_entity_is_understood(tmp_path: Path) -> None:
    """All eight levels, addresses and their default, and a name that only looks like the default."""
    path = tmp_path / "q.yaml"
    path.write_text(ALL_SHAPES)
    percent = "request_percentage"
    assert read_quotas(path) == QuotaSet(
        {
            QuotaEntity("alice", "app1"): {
                "producer_byte_rate": 1_000.0,
                "consumer_byte_rate": 2_000.0,
            },
            QuotaEntity("alice", DEFAULT): {percent: 50.5},
            QuotaEntity("alice"): {"controller_mutation_rate": 3.0},
            QuotaEntity(DEFAULT, "app1"): {percent: 1.0},
            QuotaEntity(DEFAULT, DEFAULT): {percent: 2.0},
            QuotaEntity(DEFAULT): {percent: 3.0},
            QuotaEntity(None, "app1"): {percent: 4.0},
            QuotaEntity(None, DEFAULT): {percent: 5.0},
            IpEntity("10.0.0.1"): {"connection_creation_rate": 6.0},
            IpEntity(DEFAULT): {"connection_creation_rate": 7.0},
            QuotaEntity("<default>"): {percent: 8.0},
        }
    )


@pytest.mark.parametrize("text", ["quotas:", "quotas: []"])
def test_no_quotas_at_all_are_quotas(text: str) -> None:
    """A cluster without limits can be kept in a file."""
    assert quotas_in(load(text, "x"), "x") == QuotaSet()


@pytest.mark.parametrize("text", ["", "rules: []", "- user: a"])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    """It would read as: remove everything."""
    assert problems(text) == ["line 1: expected the key `quotas`"]


NOT_PLAIN = "'producer_byte_rate' must be a plain number"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("[a]", "expected keys and values, such as `user:`"),
        ("{producer_byte_rate: 1}", "needs a user, a client-id, both, or an ip alone"),
        ("{ip: 1.2.3.4, user: a, connection_creation_rate: 1}", "or an ip alone"),
        ("{user: alice}", "user alice has no quota"),
        ("{user: 123, request_percentage: 1}", 'user must be text, such as "123"'),
        ("{user: yes, request_percentage: 1}", 'user must be text, such as "yes"'),
        ("{user: , request_percentage: 1}", "user must be text, such as <default>"),
        ("{user: [a], request_percentage: 1}", "user must be text"),
        ("{user: {name: 1}, request_percentage: 1}", "user must be text"),
        ("{user: '', request_percentage: 1}", "the name of 'user' is empty"),
        ('{user: "\\ud800", request_percentage: 1}', "user contains an incomplete Unicode character"),
        ("{user: a, producer_byte_rate: '1'}", NOT_PLAIN),
        ("{user: a, producer_byte_rate: 0100}", NOT_PLAIN),
        ("{user: a, producer_byte_rate: .nan}", NOT_PLAIN),
        ("{user: a, producer_byte_rate: [1]}", NOT_PLAIN),
        (
            "{user: a, producer_byte_rate: 0}",
            "producer_byte_rate must be greater than 0",
        ),
        (
            "{user: a, producer_byte_rate: 1.5}",
            "producer_byte_rate must be a whole number",
        ),
        ("{user: a, producer_byte_rate: 1e30}", "too large for LONG"),
        (
            "{user: a, producer_byterate: 1}",
            "'producer_byterate' is none of this entity's keys: producer_byte_rate",
        ),
        ("{usr: alice}", "unknown key 'usr'; did you mean 'user'?"),
        ("{color: red}", "unknown key 'color'; known: user, client-id, ip and quota"),
        ("{user: a, connection_creation_rate: 1}", "none of this entity's keys"),
        ("{ip: 'not an address', connection_creation_rate: 1}", "is not an address"),
        ("{ip: 1.2.3.4, request_percentage: 1}", "none of this entity's keys"),
    ],
)
def test_what_no_controller_would_store_is_reported_with_its_line(rule: str, problem: str) -> None:
    """Before anything is sent, and the good rules around it are no problem."""
    good = "  - {user: z, request_percentage: 1}\n"
    (found,) = problems(f"quotas:\n{good}  - {rule}\n")
    assert found.startswith("line 3: ")
    assert problem in found


def test_all_problems_are_reported_at_once() -> None:
    """A repeated entity, an unknown key of the file, a wrong number."""
    text = "quotas:\n  - {user: a, request_percentage: 1}\n  - {user: a, request_percentage: x}\n  - {user: a, request_percentage: 2}\nmore: 1\n"
    assert problems(text) == [
        "line 5: unknown key 'more'; known: quotas",
        "line 3: 'request_percentage' must be a plain number",
        "line 4: user a is there already in line 2",
    ]


def test_a_list_inside_another_document_is_read_the_same_way() -> None:
    """Such as candidates of a what-if; the caller collects the problems."""
    document = load("- 1\n- {user: a, request_percentage: 0}\n", "x")
    found: list[str] = []
    assert rules_of(document, found) == QuotaSet()
    assert [problem[:7] for problem in found] == ["line 1:", "line 2:"]
    assert rules_of(load("a: 1", "x"), found) == QuotaSet()
    assert found[2] == "line 1: expected a list of quotas"


@given(quota_sets)
def test_what_is_written_is_read_back(quotas: QuotaSet) -> None:
    """Whatever the names are."""
    text = quotas_yaml(quotas)
    assert quotas_in(load(text, "x"), "x") == quotas


@given(names)
def test_a_quoted_name_is_one_printable_line_and_the_same_for_every_reader(name: str) -> None:
    """Nothing of it can break the file, the terminal or the meaning of YAML 1.1."""
    assert quoted(name).isprintable()
    assert yaml.safe_load(f"user: {quoted(name)} # x") == {"user": name}


def test_a_file_reads_as_people_would_write_it() -> None:
    """Sorted, names in quotes, defaults not, whole numbers without a fraction."""
    quotas = QuotaSet(
        {
            QuotaEntity("alice", DEFAULT): {
                "request_percentage": 50.5,
                "producer_byte_rate": 1048576.0,
            },
            QuotaEntity("<default>"): {"consumer_byte_rate": 1.0},
        }
    )
    assert quotas_yaml(quotas) == (
        "quotas:\n"
        '  - user: {name: "<default>"}\n'
        "    consumer_byte_rate: 1\n"
        '  - user: "alice"\n'
        "    client-id: <default>\n"
        "    producer_byte_rate: 1048576\n"
        "    request_percentage: 50.5\n"
    )


def test_no_quotas_are_written_as_such() -> None:
    """The file says it, it is not empty."""
    assert quotas_yaml(QuotaSet()) == "quotas: []\n"
