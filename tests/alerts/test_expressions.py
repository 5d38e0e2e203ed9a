"""The rules that pint would look for, as checks of our own, as it cannot be had from the registries; and what the builders give and refuse."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import promql_parser as parser
import pytest
from tests.alerts.expressions import (
    CLUSTER,
    EVERYTHING,
    FAMILIES,
    OF_ALERTS,
    OF_PROMETHEUS,
    OF_TARGETS,
    RECORDED,
    labels_of,
    matched_labels,
    nodes,
    parsed,
    selectors,
)

from quotascope.alerts import InvalidExpression, Site, links, promql, recorded, thresholds
from quotascope.alerts.alerting.clients import LINGERING
from quotascope.alerts.book import alerts, records
from quotascope.alerts.files import decorate
from quotascope.alerts.promql import increase, rate, select
from quotascope.alerts.rule import Alert, Record
from quotascope.metrics.catalog import LIMIT_CHANGES, UTILIZATION, FamilyType

SITE = Site(grafana_url="https://grafana", runbook_url="https://wiki/{alert}")
ALERTS = list(alerts(SITE))
RULES: list[Record | Alert] = [*RECORDED.values(), *ALERTS]
SCRAPE = timedelta(minutes=1)
OF_GAUGES = {"deriv", "delta", "predict_linear"}
COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")


def for_each(rules: Sequence[Record | Alert]) -> pytest.MarkDecorator:
    """One test for each rule, called by its name."""
    return pytest.mark.parametrize("rule", rules, ids=[rule.name for rule in rules])


@for_each(RULES)
def test_names_and_labels_exist(rule: Record | Alert) -> None:
    """Whatever is read is in the catalog or recorded, and has the labels that are asked for."""
    for selector in selectors(rule.expr):
        if selector.name == OF_ALERTS:
            (named,) = re.findall(r'alertname="(\w+)"', str(selector))
            assert named in {alert.name for alert in ALERTS}
            continue
        assert selector.name in {*FAMILIES, *RECORDED, OF_TARGETS}
        assert matched_labels(selector) <= labels_of(selector.name)


@for_each(ALERTS)
def test_alerts_have_the_labels_that_they_report(rule: Alert) -> None:
    """What aggregations and joins leave is what annotations and links use, no more and no less."""
    assert labels_of(rule.expr) == {CLUSTER, *rule.labels}


@for_each([*RECORDED.values()])
def test_records_are_named_by_their_level(rule: Record) -> None:
    """`level:metric:operations`, and one of the labels is the level."""
    level, _, _ = re.fullmatch(r"([a-z]+):([a-z0-9_]+):([a-z0-9]+)", rule.name).groups()  # type: ignore[union-attr]
    labels = labels_of(rule.expr)
    assert {"entity": "client_id"}.get(level, level) in labels
    assert "cluster" in labels
    assert ("instance" in labels) == (level == "instance")


@for_each(RULES)
def test_counters_are_read_as_rates_over_several_scrapes(rule: Record | Alert) -> None:
    """A rate of a gauge means nothing, one over a single scrape is often empty, and a counter depends on its start."""
    as_rates = set()
    for call in (node for node in nodes(parsed(rule.expr)) if isinstance(node, parser.Call)):
        name, read = call.func.name, [str(node.name) for node in nodes(call) if isinstance(node, parser.VectorSelector)]
        if name in {"rate", "increase"}:
            as_rates |= {*read}
            assert {FAMILIES[each].type for each in read} == {FamilyType.COUNTER}
            assert call.args[0].range >= 2 * SCRAPE
        elif name in OF_GAUGES or (name.endswith("_over_time") and name != "last_over_time"):
            assert {FAMILIES[each].type for each in read if each in FAMILIES} <= {FamilyType.GAUGE}
    families = [FAMILIES[each.name] for each in selectors(rule.expr) if each.name in FAMILIES]
    assert {family.name for family in families if family.type is FamilyType.COUNTER} <= as_rates


@for_each(RULES)
def test_aggregations_name_what_they_keep_and_nothing_is_divided_by_zero(rule: Record | Alert) -> None:
    """
    `by` with the cluster: `without`, topk and a forgotten label break when a label is added.

    A limit or a capacity of 0 would give NaN or infinity, which poisons sums: it is left out instead.
    """
    for node in nodes(parsed(rule.expr)):
        if isinstance(node, parser.AggregateExpr):
            assert str(node.op) not in {"topk", "bottomk", "quantile", "count_values"}
            assert node.modifier is not None
            assert node.modifier.type == parser.AggModifierType.By
            assert CLUSTER in node.modifier.labels
        if isinstance(node, parser.BinaryExpr) and str(node.op) == "/" and [*selectors(str(node.rhs))]:
            assert re.fullmatch(r"\(.+ > 0\)", str(node.rhs))


@for_each(RULES)
def test_joins_keep_clusters_apart(rule: Record | Alert) -> None:
    """
    Every vector meets another on named labels, the cluster's or the target's among them; not what fills in, nor a series its own past.

    Both sides of an `or` have the same labels: otherwise what fires, and what it is called, depends on the side.
    """
    for node in _joins(rule.expr):
        left, right = ({each.name for each in selectors(str(side))} for side in (node.lhs, node.rhs))
        matching = node.modifier.matching if node.modifier else None
        if str(node.op) == "or":
            assert matching or labels_of(str(node.lhs)) == labels_of(str(node.rhs))
        elif right and not (str(node.op) in {"unless", ">="} and left == right):
            assert matching is not None, node
            assert matching.type == parser.LabelModifierType.Include
            assert CLUSTER in matching.labels or (right == {OF_TARGETS} and {*OF_PROMETHEUS} == {*matching.labels})


@for_each(ALERTS)
def test_alerts_compare_and_wait_for_absence(rule: Alert) -> None:
    """
    An alert without a comparison fires whenever there is data, or is about data that is not there.

    A Prometheus that was just started has no series yet.
    """
    operators = {str(node.op) for node in nodes(parsed(rule.expr)) if isinstance(node, parser.BinaryExpr)}
    assert operators & {*COMPARISONS, "unless"}
    if "absent(" in rule.expr or "unless" in rule.expr:
        assert parser.parse_duration(rule.wait) >= 2 * SCRAPE


@for_each(ALERTS)
def test_all_that_an_alert_needs_is_there(rule: Alert) -> None:
    """Headline, text and links; fixed labels, for a value in a label makes a new alert of each evaluation."""
    written = decorate(SITE, rule)
    assert re.fullmatch(r"KafkaQuota([A-Z][a-z]+)+", written["alert"])
    assert parser.parse_duration(written["for"]) >= timedelta(0)
    assert written["labels"] == {"severity": rule.severity.value, "scope": rule.scope.value}
    notes = written["annotations"]
    assert list(notes) == ["summary", "description", "runbook_url", "dashboard_url"]
    assert notes["summary"].endswith(".")
    assert "{{" not in notes["summary"]
    used = set(re.findall(r"\$labels\.(\w+)", notes["description"] + notes["dashboard_url"]))
    assert used <= {CLUSTER, *rule.labels}


@for_each(ALERTS)
def test_levels_are_compared_with_what_has_a_name(rule: Alert) -> None:
    """Every number of an alert but 0 and 1 is a threshold with a reason, or a part of one."""
    named = {threshold.value for threshold in rule.thresholds} | {0.0, 1.0}
    scaled = {91.2}  # 0.95 of a day in quarters of an hour
    reported = {float(least) for least, _ in LINGERING}  # Kafka reports a throttle for a minute, however long it lasts
    numbers = {
        node.rhs.val
        for node in nodes(parsed(rule.expr))
        if isinstance(node, parser.BinaryExpr)
        and str(node.op) in COMPARISONS
        and isinstance(node.rhs, parser.NumberLiteral)
    }
    assert numbers <= named | scaled | reported


def test_every_threshold_is_used_and_no_rule_is_there_twice() -> None:
    """One that no alert uses would be documented for nothing; two rules with one name or expression are a mistake."""
    used = {id(one) for alert in ALERTS for one in alert.thresholds}
    assert [name for name, one in thresholds() if id(one) not in used] == []
    assert len({rule.name for rule in RULES}) == len({rule.expr for rule in RULES}) == len(RULES)


def test_another_label_of_clusters_takes_the_place_of_ours() -> None:
    """A site that calls its clusters differently gets the same rules with its label."""
    other = replace(EVERYTHING, cluster_label="kafka_cluster")
    rules: list[Record | Alert] = [*records(other), *alerts(other)]
    theirs = [re.sub(r"\s+", "", rule.expr) for rule in rules]
    ours = [re.sub(r"\bcluster\b(?!:)", "kafka_cluster", rule.expr) for rule in RULES]
    assert theirs == [re.sub(r"\s+", "", each) for each in ours]


def test_every_recorded_series_has_a_rule() -> None:
    """Dashboards use the names of `recorded`."""
    named = {value for name, value in vars(recorded).items() if name.isupper() and isinstance(value, str)}
    assert {each for each in named if ":" in each} | {*recorded.BURNS.values()} == set(RECORDED)


def test_the_checks_find_mistakes() -> None:
    """What the checks above are for is found."""
    with pytest.raises(AssertionError, match="which is not there"):
        labels_of("max by (listener) (kafka_quota_utilization_ratio)")
    with pytest.raises(AssertionError, match="which one side lacks"):
        labels_of("kafka_quota_utilization_ratio / on (ip) kafka_quota_rules")


def _joins(expression: str) -> Iterator[Any]:
    for node in nodes(parsed(expression)):
        if isinstance(node, parser.BinaryExpr) and not any(
            isinstance(_bare(side), parser.NumberLiteral) for side in (node.lhs, node.rhs)
        ):
            yield node


def _bare(node: Any) -> Any:
    return _bare(node.expr) if isinstance(node, parser.ParenExpr) else node


@pytest.mark.parametrize("module", [links, promql, recorded], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    """Each builder shows its PromQL, and that is what comes out."""
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


def test_a_rate_of_a_gauge_is_refused() -> None:
    """It would be a number that means nothing."""
    with pytest.raises(InvalidExpression, match=r"rate\(\) of kafka_quota_utiliz"):
        rate(UTILIZATION, "5m")
    with pytest.raises(InvalidExpression, match="which is a gauge"):
        increase(UTILIZATION, "5m")


@pytest.mark.parametrize(
    ("text", "message"),
    [('broker="1"', "has no label broker"), ("broker", "is not a matcher"), ('"broker"="1"', "is not a matcher")],
)
def test_what_would_match_nothing_is_refused(text: str, message: str) -> None:
    """The alert would never fire; the cluster's label may be asked for, though no family declares it."""
    with pytest.raises(InvalidExpression, match=message):
        select(LIMIT_CHANGES, text)
    assert select(LIMIT_CHANGES, 'cluster!="a=b"', extra="cluster") == 'quotascope_limit_changes_total{cluster!="a=b"}'
