"""Quotas in a YAML file, read and written."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from tests.quotas.examples import ALICE, PERCENT, SHAPES, names, quota_sets

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.quotas import Entity, IpEntity, QuotaSet, load, quotas_in, quotas_yaml, read_quotas, rules_of
from quotascope.quotas.yaml_file import quoted

TEXT = """\
quotas:
  - user: {name: "<default>"}
    consumer_byte_rate: 1
  - user: "alice"
    client-id: <default>
    producer_byte_rate: 1048576
    request_percentage: 50.5
"""


def read(text: str) -> QuotaSet:
    return quotas_in(load(text, "q.yaml"), "q.yaml")


def test_a_file_reads_as_people_would_write_it(tmp_path: Path) -> None:
    """The file is sorted, with names in quotes, defaults without, whole numbers without a fraction."""
    pair = {PERCENT: 50.5, "producer_byte_rate": 1048576.0}
    quotas = QuotaSet({QuotaEntity("alice", DEFAULT): pair, QuotaEntity("<default>"): {"consumer_byte_rate": 1.0}})
    assert quotas_yaml(quotas) == TEXT
    path = tmp_path / "q.yaml"
    path.write_text(TEXT)
    assert read_quotas(path) == quotas


def test_a_cluster_without_limits_can_be_kept_in_a_file() -> None:
    """The file says that there are no quotas."""
    assert quotas_yaml(QuotaSet()) == "quotas: []\n"
    assert read("quotas:") == read("quotas: []") == QuotaSet()


@given(quota_sets)
def test_what_is_written_is_read_back(quotas: QuotaSet) -> None:
    """Quotas of any names are read back as they were written."""
    assert read(quotas_yaml(quotas)) == quotas


@given(names)
def test_a_quoted_name_is_one_printable_line_and_the_same_for_every_reader(name: str) -> None:
    """No name can break the file, the terminal or the meaning of YAML 1.1."""
    assert quoted(name).isprintable()
    assert yaml.safe_load(f"user: {quoted(name)} # x") == {"user": name}


@pytest.mark.parametrize(("entity", "_rule", "written"), SHAPES)
def test_every_shape_of_entity_is_understood(entity: Entity, _rule: str, written: str) -> None:
    """A file may have all eight levels, addresses, their default, and a name that looks like the default."""
    key = "connection_creation_rate" if isinstance(entity, IpEntity) else PERCENT
    assert read(f"quotas: [{{{written}, {key}: 1_000}}]") == {entity: {key: 1000.0}}


def test_a_list_inside_another_document_is_read_the_same_way() -> None:
    """
    Rules inside another document, such as candidates of a what-if, are read alike.

    The caller collects the problems, and wrong rules are left out.
    """
    problems: list[str] = []
    rules = load("- {user: a, request_percentage: 0}\n- {user: alice, request_percentage: 2}\n- 3", "x")
    assert rules_of(rules, problems) == {ALICE: {PERCENT: 2.0}}
    assert rules_of(load("a: 1", "x"), problems) == QuotaSet()
    assert [problem[:7] for problem in problems] == ["line 1:", "line 3:", "line 1:"]
