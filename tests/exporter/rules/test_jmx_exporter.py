"""The rules file for jmx_exporter."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import texts

from quotascope.exporter.mapping import ATTRIBUTES, Attribute, Bean, BeanColumn
from quotascope.exporter.rules import (
    ACTIVE_CONTROLLER,
    EVENT_QUEUE_MEAN,
    NAMES,
    REQUESTS,
    START_TIME,
    STRIMZI_FACTOR,
    STRIMZI_LIMIT,
    THROTTLE_MEAN,
    jmx_exporter_rules,
)
from quotascope.exporter.sources.dialects import own_column, own_factor
from quotascope.metrics import catalog
from quotascope.metrics.catalog import FamilyType
from quotascope.metrics.kafka.jmx import parse_object_name, quote_tag_value
from quotascope.metrics.kafka.sanitizer import sanitize

Sample = tuple[str, dict[str, str], float]
TEXT = jmx_exporter_rules()
FILE = yaml.safe_load(TEXT)
CLIENT = [attribute for attribute in ATTRIBUTES if "user" in attribute.free]
filled = texts.filter(bool)


@lru_cache(maxsize=2)
def rules_of(text: str) -> list[tuple[re.Pattern[str], Mapping[str, Any]]]:
    """Return the rules of a file, each with its pattern as the agent extends it."""
    return [(re.compile(f"^.*(?:{rule['pattern']}).*$"), rule) for rule in yaml.safe_load(text)["rules"]]


def sample(
    text: str, domain: str, properties: Sequence[tuple[str, str]], attribute: str, value: float = 1.0
) -> Sample | None:
    """
    Return the sample that a jmx_exporter makes of an attribute: name, labels and number by the first matching rule.

    Properties come in the order of the MBean's name, unquoted. `sources/test_real_own_rules.py` has a real agent.
    """
    inner = ", ".join(f"{key}={quote_tag_value(reported)}" for key, reported in properties)
    for pattern, rule in rules_of(text):
        match = pattern.match(f"{domain}<{inner}><>{attribute}: {value}")
        if match:
            labels = {name: _replaced(match, label) for name, label in rule.get("labels", {}).items()}
            labels_with_text = {name: label for name, label in labels.items() if label}
            return rule["name"], labels_with_text, value * rule.get("valueFactor", 1.0)
    return None


def _replaced(match: re.Match[str], text: str) -> str:
    return re.sub(r"\$(\d+)", lambda group: match[int(group[1])] or "", text)


def factor_of(column: BeanColumn) -> float:
    return own_factor(column)


def test_every_attribute_of_brokers_has_one_rule() -> None:
    """The rule file has one rule for every attribute of the table, and no other rule."""
    reported = [(rule["name"], rule["pattern"]) for rule in FILE["rules"]]
    assert len(set(reported)) == len(reported) == len(NAMES)
    assert [name.attribute for name in NAMES] == [*ATTRIBUTES]


def test_only_the_beans_of_the_table_are_read() -> None:
    """The list of object names covers each rule as patterns, also under its old name for old agents."""
    patterns = FILE["includeObjectNames"]
    assert FILE["whitelistObjectNames"] == patterns
    assert set(patterns) == {name.attribute.pattern for name in NAMES}
    for pattern in patterns:
        domain, properties = parse_object_name(pattern.removesuffix(",*"))
        assert domain.startswith(("kafka.", "io.strimzi.kafka.quotas"))
        assert properties["type"]


def test_families_are_those_of_the_catalog_and_the_parts() -> None:
    """An agent's page uses our names only with our meaning, and its own names are nowhere else."""
    parts = {ACTIVE_CONTROLLER, EVENT_QUEUE_MEAN, REQUESTS, START_TIME, STRIMZI_FACTOR, STRIMZI_LIMIT, THROTTLE_MEAN}
    families = {name.family for name in NAMES}
    assert parts <= families
    assert families - parts <= set(catalog.families())
    assert not {part.name for part in parts} & {family.name for family in catalog.families()}


@pytest.mark.parametrize(
    "rule", FILE["rules"], ids=[f"{place}-{rule['name']}" for place, rule in enumerate(FILE["rules"])]
)
def test_a_rule_is_harmless(rule: dict[str, object]) -> None:
    """Types agree with the catalog, help is plain text, no pattern exhausts Java's stack or stops at a line end."""
    family = next(name.family for name in NAMES if name.family.name == rule["name"])
    counts = family.type is FamilyType.COUNTER
    assert rule["type"] == ("COUNTER" if counts else "GAUGE")
    assert rule["help"] == family.help
    assert not re.search(r"[$\\]", family.help)  # the agent would replace groups
    pattern = str(rule["pattern"])
    assert pattern.startswith("^")
    bare = re.sub(r"\[(?:[^]\\]|\\.)*\]|\\.", "", pattern)  # without classes, escapes
    assert "." not in bare
    assert not set(re.sub(r"[*+]\+", "", bare)) & {"*", "+"}  # possessive, all of them


def test_what_is_of_no_use_is_left_out() -> None:
    """The rules leave out other attributes, other errors, other beans."""
    requests = [("type", "RequestMetrics"), ("name", "ThrottleTimeMs"), ("request", "Fetch")]
    errors = [("type", "RequestMetrics"), ("name", "ErrorsPerSec"), ("request", "Fetch"), ("error", "NONE")]
    assert sample(TEXT, "kafka.network", requests, "99thPercentile") is None
    assert sample(TEXT, "kafka.network", errors, "Count") is None
    assert sample(TEXT, "kafka.server", [("type", "ReplicaManager")], "Value") is None


def test_quotes_go_where_nothing_is_lost() -> None:
    """Quotes that Java adds because of a comma are removed; names with a backslash keep theirs."""
    labels = {
        **{name: name for name in ("plain", "a/b:c=d,e", "a, client-id=b", "x><>byte-rate: 1", "ümlaut\r\u2028")},
        "*": r'"\*"',
        '"quoted"': r'"\"quoted\""',
        "line\nend": r'"line\nend"',
    }
    for client_id, label in labels.items():
        reported = sample(TEXT, "kafka.server", [("type", "Produce"), ("client-id", client_id)], "byte-rate")
        assert reported is not None
        assert reported[1] == {"client_id": label}


@given(data=st.data())
def test_the_dialect_reads_back_what_the_rules_write(data: st.DataObject) -> None:
    """Any names of clients and tags are read back, in whatever order the broker writes them."""
    attribute = data.draw(st.sampled_from(CLIENT))
    tags = data.draw(_tags_of(attribute))
    order = data.draw(st.permutations(list(tags.items())))
    properties = [("type", attribute.type), *order]
    reported = sample(TEXT, attribute.domain, properties, attribute.name, 250.0)
    assert reported is not None
    name, labels, value = reported
    column = own_column(name, labels)
    assert column == BeanColumn(Bean.of(attribute.domain, dict(properties)), attribute.name)
    assert value * factor_of(column) == pytest.approx(250.0)


def _tags_of(attribute: Attribute) -> st.SearchStrategy[dict[str, str]]:
    own_tags = st.fixed_dictionaries({}, optional={"user": filled.map(sanitize), "client-id": filled})
    if not attribute.open:
        return own_tags
    keys = st.sampled_from(("quota.type", "group", "a b", "ten-ant", "é"))
    other_tags = st.dictionaries(keys, filled, min_size=1, max_size=4)
    return st.builds(lambda tags, right: {**tags, **right}, own_tags, other_tags)


@pytest.mark.parametrize(
    "attribute",
    [attribute for attribute in ATTRIBUTES if attribute not in CLIENT],
    ids=lambda attribute: f"{attribute.meaning.name}-{attribute.type}{attribute.part}",
)
def test_what_a_node_says_of_itself_comes_back(attribute: Attribute) -> None:
    """All other attributes of a node are read back, with their properties in any order after the name."""
    free = {key: f"{key}-1" for key in attribute.free if attribute.required}
    fixed = dict(attribute.fixed)
    head = [("type", attribute.type), *list(fixed.items())[:1]]
    for properties_in_order in permutations([*list(fixed.items())[1:], *free.items()]):
        properties = [*head, *properties_in_order]
        reported = sample(TEXT, attribute.domain, properties, attribute.name)
        assert reported is not None
        column = own_column(reported[0], reported[1])
        bean = Bean.of(attribute.domain, dict(properties))
        assert column == BeanColumn(bean, attribute.name)
        assert reported[2] * factor_of(column) == pytest.approx(1.0)


def test_what_the_rules_never_write_is_left_out() -> None:
    """Our families that the rules do not write, other labels, broken quotes and tags are left out."""
    never: list[tuple[str, dict[str, str]]] = [
        ("utilization_ratio", {"user": "u"}),
        ("throttle_time_seconds", {"user": "u"}),
        ("produce_bytes_per_second", {"client_id": '"broken'}),
        ("callback_produce_bytes_per_second", {"tags": "no tags"}),
        ("callback_produce_bytes_per_second", {}),
    ]
    columns = [own_column(f"kafka_quota_{name}", labels) for name, labels in never]
    assert columns == [None] * len(never)


def test_rules_of_clients_come_first() -> None:
    """Rules of clients, which have thousands of beans, come first and are cached by the agent."""
    cached = [bool(rule.get("cache")) for _, rule in rules_of(TEXT)]
    assert cached == sorted(cached, reverse=True)
    assert 0 < sum(cached) < len(cached)
