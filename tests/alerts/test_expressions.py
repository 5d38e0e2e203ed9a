"""Checks of all expressions as pint makes them, which registries do not offer; and the builders of PromQL."""

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
import yaml
from tests.alerts.expressions import (
    CLUSTER,
    EVERYTHING,
    FAMILIES,
    OF_ALERTS,
    OF_PROMETHEUS,
    OF_TARGETS,
    RECORDED,
    edges,
    labels_of,
    matched_labels,
    nodes,
    parsed,
    selectors,
)

from quotascope.alerts import Dashboard, Site, links, render, settings, thresholds
from quotascope.alerts.render import TEXTS, Rule, alerts, records, text, thresholds_of
from quotascope.alerts.settings import Profile
from quotascope.dashboards import promql, recorded
from quotascope.dashboards.errors import InvalidExpression
from quotascope.dashboards.promql import increase, rate, select
from quotascope.metrics.catalog import LIMIT_CHANGES, UTILIZATION, FamilyType

SITE = Site(
    grafana_url="https://grafana",
    exporter_url="https://exporter",
    runbook_url="https://wiki/{alert}",
    profile=Profile.ALL,
)
ALERTS = list(alerts(SITE))
RULES = [*RECORDED.values(), *ALERTS]
REPORTED = {30.0, 60.0, 120.0, 180.0, 300.0, 480.0, 540.0, 780.0, 1020.0}
"""Seconds for which a throttle lasts after Kafka's last report of it, and the thirty steps of a share."""
SCRAPE = timedelta(minutes=1)
OF_GAUGES = {"deriv", "delta", "predict_linear"}
COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")


def for_each(rules: Sequence[Rule]) -> pytest.MarkDecorator:
    """Return one test for each rule, called by its name."""
    return pytest.mark.parametrize("rule", rules, ids=[rule.get("alert") or rule["record"] for rule in rules])


@for_each(RULES)
def test_names_and_labels_exist(rule: Rule) -> None:
    """Series of expressions are in the catalog or recorded, and have the labels that the expressions use."""
    for selector in selectors(rule["expr"]):
        if selector.name == OF_ALERTS:
            (named,) = re.findall(r'alertname="(\w+)"', str(selector))
            assert named in {alert["alert"] for alert in ALERTS}
            continue
        assert selector.name in {*FAMILIES, *RECORDED, OF_TARGETS}
        assert matched_labels(selector) <= labels_of(selector.name)


@for_each(ALERTS)
def test_alerts_have_the_labels_that_they_report(rule: Rule) -> None:
    """
    Annotations and links use the labels that an expression returns; an alert on an entity has its names.

    A link to a dashboard sets each variable for which the alert has a label.
    """
    labels = labels_of(rule["expr"])
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    assert CLUSTER in used <= labels
    unnamed = {"quota_type", "instance", "direction"} if rule["labels"]["scope"] != "exporter" else set[str]()
    assert labels - used <= unnamed
    assert ({"user", "client_id"} <= labels) == (rule["labels"]["scope"] == "entity")
    (uid, variables) = re.fullmatch(
        r"https://grafana/d/([a-z-]+)\{\{(.*)", rule["annotations"]["dashboard_url"]
    ).groups()  # type: ignore[union-attr]
    dashboard = next(board for board in Dashboard if board.uid == uid)
    assert re.findall(r"var-(\w+)=", variables) == [name for name in dashboard.variables if name in labels]


@for_each([*RECORDED.values()])
def test_records_are_named_by_their_level(rule: Rule) -> None:
    """Recorded series are named `level:metric:operations`, and have the level as a label."""
    match = re.fullmatch(r"([a-z]+):[a-z0-9_]+:[a-z0-9]+", rule["record"])
    assert match is not None
    level = match[1]
    labels = labels_of(rule["expr"])
    assert {"entity": "client_id"}.get(level, level) in labels
    assert "cluster" in labels
    assert ("instance" in labels) == (level == "instance")


@for_each(RULES)
def test_counters_are_read_as_rates_over_several_scrapes(rule: Rule) -> None:
    """Rates are of counters and over several scrapes, other functions are of gauges."""
    as_rates = set()
    for call in (node for node in nodes(parsed(rule["expr"])) if isinstance(node, parser.Call)):
        name, series = (
            call.func.name,
            [str(node.name) for node in nodes(call) if isinstance(node, parser.VectorSelector)],
        )
        if name in {"rate", "increase"}:
            as_rates |= {*series}
            assert {FAMILIES[metric].type for metric in series} == {FamilyType.COUNTER}
            assert call.args[0].range >= 2 * SCRAPE
        elif name in OF_GAUGES or (name.endswith("_over_time") and name != "last_over_time"):
            assert {FAMILIES[metric].type for metric in series if metric in FAMILIES} <= {FamilyType.GAUGE}
    families = [FAMILIES[selector.name] for selector in selectors(rule["expr"]) if selector.name in FAMILIES]
    assert {family.name for family in families if family.type is FamilyType.COUNTER} <= as_rates


@for_each(RULES)
def test_aggregations_name_what_they_keep_and_nothing_is_divided_by_zero(rule: Rule) -> None:
    """
    Aggregations have `by` with the cluster: `without` and `topk` break when a label is added.

    A limit or a capacity of 0 would give NaN or infinity, which spoils sums: it is left out instead.
    """
    for node in nodes(parsed(rule["expr"])):
        if isinstance(node, parser.AggregateExpr):
            assert str(node.op) not in {"topk", "bottomk", "quantile", "count_values"}
            assert node.modifier is not None
            assert node.modifier.type == parser.AggModifierType.By
            assert CLUSTER in node.modifier.labels
        if isinstance(node, parser.BinaryExpr) and str(node.op) == "/" and [*selectors(str(node.rhs))]:
            assert re.fullmatch(r"\(.+ > 0\)", str(node.rhs))


@for_each(RULES)
def test_joins_keep_clusters_apart(rule: Rule) -> None:
    """
    Joins match on named labels with the cluster's or the target's, except for defaults and for a series with its past.

    Both sides of an `or` have the same labels: otherwise the labels of an alert would depend on the side. Series of
    custom callbacks, whose labels are the callback's, match on all of them.
    """
    for node in _joins(rule["expr"]):
        left, right = ({selector.name for selector in selectors(str(side))} for side in (node.lhs, node.rhs))
        matching = node.modifier.matching if node.modifier else None
        if all((name or "").startswith("kafka_quota_callback_") for name in left | right):
            assert matching is None
        elif str(node.op) == "or":
            assert matching or labels_of(str(node.lhs)) == labels_of(str(node.rhs))
        elif right and not (str(node.op) in {"unless", ">="} and left == right):
            assert matching is not None, node
            assert matching.type == parser.LabelModifierType.Include
            assert CLUSTER in matching.labels or (right == {OF_TARGETS} and {*OF_PROMETHEUS} == {*matching.labels})


@for_each(RULES)
def test_no_sample_is_at_the_end_of_a_range(rule: Rule) -> None:
    """No range is a multiple of an interval: Prometheus 2 counts the sample at its end, Prometheus 3 does not."""
    assert edges(rule["expr"]) == []


@for_each(RULES)
def test_alerts_that_fire_are_read_over_more_than_five_minutes(rule: Rule) -> None:
    """Rules read alerts over more than five minutes, after which a plain selector finds nothing."""
    windows = [node for node in nodes(parsed(rule["expr"])) if isinstance(node, parser.MatrixSelector)]
    long = [
        window for window in windows if window.vector_selector.name == OF_ALERTS and window.range > timedelta(minutes=5)
    ]
    assert len(long) == sum(selector.name == OF_ALERTS for selector in selectors(rule["expr"]))


@for_each(ALERTS)
def test_alerts_compare_and_wait_for_absence(rule: Rule) -> None:
    """
    An alert has a comparison or is about missing data, and then waits for two scrapes.

    A Prometheus that has just started has no series yet, and no entity that was throttled for minutes.
    """
    shares = ("kafka_quota_throttled:persistent", "kafka_quota_persistently_throttled:count", "[14m59s:30s]")
    operators = {str(node.op) for node in nodes(parsed(rule["expr"])) if isinstance(node, parser.BinaryExpr)}
    assert operators & {*COMPARISONS, "unless"}
    of_long_windows = any(name in rule["expr"] for name in shares)
    if ("absent(" in rule["expr"] or "unless" in rule["expr"]) and not of_long_windows:
        assert parser.parse_duration(rule["for"]) >= 2 * SCRAPE


@for_each(ALERTS)
def test_all_that_an_alert_needs_is_there(rule: Rule) -> None:
    """An alert has a headline, a text, links and fixed labels: a value in a label would make a new alert each time."""
    assert re.fullmatch(r"KafkaQuota([A-Z][a-z]+)+", rule["alert"])
    assert parser.parse_duration(rule["for"]) >= timedelta(0)
    assert {*rule["labels"]} == {"severity", "scope"}
    notes = rule["annotations"]
    links = ["runbook_url", "dashboard_url", *(["entity_url"] if rule["labels"]["scope"] == "entity" else [])]
    assert list(notes) == ["summary", "description", *links]
    assert notes["summary"].endswith(".")
    assert "{{" not in notes["summary"]


@for_each(ALERTS)
def test_levels_are_compared_with_what_has_a_name(rule: Rule) -> None:
    """Numbers in comparisons are 0, 1, thresholds with a reason, or times of throttles."""
    named = dict(thresholds())
    values = {named[name].value for name in thresholds_of(rule["alert"])} | {0.0, 1.0}
    numbers = {
        node.rhs.val
        for node in nodes(parsed(rule["expr"]))
        if isinstance(node, parser.BinaryExpr)
        and str(node.op) in COMPARISONS
        and isinstance(node.rhs, parser.NumberLiteral)
    }
    assert numbers <= values | REPORTED


def test_every_threshold_is_used_and_no_rule_is_there_twice() -> None:
    """Each threshold is used by an alert, and no two rules have the same name or expression."""
    used = {name for alert in ALERTS for name in thresholds_of(alert["alert"])}
    assert used == {name for name, _ in thresholds()}
    names = [rule.get("alert") or rule["record"] for rule in RULES]
    assert len({*names}) == len({rule["expr"] for rule in RULES}) == len(RULES)


@for_each(ALERTS)
def test_thresholds_that_an_alert_names_are_those_of_what_it_reads(rule: Rule) -> None:
    """Thresholds that an alert names are in the texts of its recorded series, and not in its own text."""
    texts = {
        entry.get("alert") or entry["record"]: entry
        for name in TEXTS
        for group in text(name)["groups"]
        for entry in group["rules"]
    }
    entry_of_alert = texts[rule["alert"]]
    reached, unread = set[str](), {entry_of_alert["alert"]}
    while unread:
        entry = texts[unread.pop()]
        reached.add(entry.get("alert") or entry["record"])
        unread |= {name for name in RECORDED if name in entry["expr"]} - reached
    behind = "".join(texts[name]["expr"] for name in reached)
    for name in entry_of_alert.get("thresholds", ()):
        assert f"${{{name}}}" in behind
        assert f"${{{name}}}" not in entry_of_alert["expr"]


def test_every_place_of_the_texts_has_a_value() -> None:
    """Each part is used by a text; a missing part is an error when rules are written."""
    places = {
        place
        for name in (*TEXTS, "parts")
        for place in re.findall(r"\$\{(\w+)\}", yaml.safe_dump(text(name), width=1_000_000))
    }
    filled_in_code = {"owned", "owned_by", "budget_burn"}
    assert {*text("parts")} <= places | filled_in_code


def test_another_label_of_clusters_takes_the_place_of_ours() -> None:
    """A site with another label of clusters gets the same rules with that label."""
    site = replace(SITE, cluster_label="kafka_cluster", teams=EVERYTHING.teams, objectives=EVERYTHING.objectives)
    theirs = [re.sub(r"\s+", "", rule["expr"]) for rule in (*records(site), *alerts(site))]
    ours = [re.sub(r"\bcluster\b(?!:)", "kafka_cluster", rule["expr"]) for rule in RULES]
    assert theirs == [re.sub(r"\s+", "", expr) for expr in ours]


def test_every_recorded_series_has_a_rule() -> None:
    """Names in `recorded`, which dashboards use, have a rule."""
    named = {value for name, value in vars(recorded).items() if name.isupper() and isinstance(value, str)}
    assert {name for name in named if ":" in name} <= {*RECORDED}


def test_the_checks_find_mistakes() -> None:
    """The checks above find missing labels and ranges that are multiples of an interval."""
    with pytest.raises(AssertionError, match="which is not there"):
        labels_of("max by (listener) (kafka_quota_utilization_ratio)")
    assert edges("max_over_time(up[4m59s]) and rate(x_total[5m]) or y") == ["[5m]"]
    assert edges("avg_over_time((up > 1)[1d:5m]) > max_over_time(up[599s:1m])") == ["[1d:5m]"]
    with pytest.raises(AssertionError, match="which one side lacks"):
        labels_of("kafka_quota_utilization_ratio / on (ip) kafka_quota_rules")


def _joins(expression: str) -> Iterator[Any]:
    for node in nodes(parsed(expression)):
        if isinstance(node, parser.BinaryExpr) and not any(_is_scalar(_bare(side)) for side in (node.lhs, node.rhs)):
            yield node


def _is_scalar(node: Any) -> bool:
    return isinstance(node, parser.NumberLiteral) or (isinstance(node, parser.Call) and node.func.name == "time")


def _bare(node: Any) -> Any:
    return _bare(node.expr) if isinstance(node, parser.ParenExpr) else node


@pytest.mark.parametrize("module", [links, promql, recorded, render, settings], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    """Examples in docstrings return the PromQL that they show."""
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


def test_a_rate_of_a_gauge_is_refused() -> None:
    """A rate of a gauge, which has no meaning, is refused."""
    with pytest.raises(InvalidExpression, match=r"rate\(\) of kafka_quota_utiliz"):
        rate(UTILIZATION, "5m")
    with pytest.raises(InvalidExpression, match="which is a gauge"):
        increase(UTILIZATION, "5m")


@pytest.mark.parametrize(
    ("text", "message"),
    [('broker="1"', "has no label broker"), ("broker", "is not a matcher"), ('"broker"="1"', "is not a matcher")],
)
def test_what_would_match_nothing_is_refused(text: str, message: str) -> None:
    """A matcher that no series can match is refused; the cluster's label is allowed, though no family declares it."""
    with pytest.raises(InvalidExpression, match=message):
        select(LIMIT_CHANGES, text)
    assert select(LIMIT_CHANGES, 'cluster!="a=b"', extra="cluster") == 'quotascope_limit_changes_total{cluster!="a=b"}'
