"""
Statements of each surface about throttled clients, read as a person or a program reads it.

Rows by entity and quota type.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from tests.integration.page import Page

Entity: TypeAlias = tuple[str, str, str]
"""Quota type, user and client-id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    Row of a surface about an entity.

    Its throttle time, its utilization, and the rule that throttles it, or applies.
    """

    throttle_seconds: float
    used: float
    rule: str


Rows: TypeAlias = Mapping[Entity, Row]

OF_MUTATIONS: Final = "controller mutations: "
"""The words before a rule that is of another quota than its row."""
_TERMINAL: Final = re.compile(
    r"^\d+ +(?P<entity>.+?) +(?P<quota>produce|fetch|request|controller) .*? (?P<used><?\d+%) +(?:<?\d+%|-) +"
    r"(?P<throttle>[\d.]+) s +(?:[\d.]+ s|<?\d+%) +(?:[▁-█ ]+ )?(?P<rule>\S.*?) *$"
)
"""A line of `status` or `top` with a shadow, on a wide terminal; `controller mutation` may be broken."""
_ALERT: Final = re.compile(
    r", for (?P<share>[\d.]+)% of the last 15 minutes, by (?P<throttle>[\d.]+)(?P<unit>m?s) on average: "
    r"it \w+ (?P<used>[\d.]+)% of its .+? \(rule (?P<rule>.+)\)\.$"
)
_THROTTLED: Final = re.compile(r"KafkaQuota(Produce|Fetch|Request|Mutation)Throttled")


def of_metrics(page: Page) -> Rows:
    """Return the rows of `/metrics`: series of four families, joined by their labels."""

    def row(quota_type: str, user: str, client_id: str, throttle: float) -> Row:
        labels = {"quota_type": quota_type, "user": user, "client_id": client_id}
        causes = [sample.labels for sample in page.series("kafka_quota_throttle_cause_info", **labels)]
        words = ""
        if [cause["cause"] for cause in causes] == ["controller_mutation"]:
            (cause,) = causes
            words, labels = OF_MUTATIONS, {**labels, "quota_type": "controller_mutation"}
            labels |= {"user": cause["by_user"], "client_id": cause["by_client_id"]}
        rule = page.labels("kafka_quota_rule_info", **labels)["rule"]
        used = page.value("kafka_quota_utilization_ratio", quota_type=quota_type, user=user, client_id=client_id)
        return Row(throttle_seconds=throttle, used=used, rule=words + rule)

    return {
        (labels["quota_type"], labels["user"], labels["client_id"]): row(
            labels["quota_type"], labels["user"], labels["client_id"], sample.value
        )
        for sample in page.series("kafka_quota_throttle_time_seconds")
        for labels in [sample.labels]
        if any(page.series("kafka_quota_rule_info", **{k: v for k, v in labels.items() if k != "broker"}))
    }


def of_documents(entities: Iterable[Mapping[str, Any]]) -> Rows:
    """Return the rows of the JSON of entities or episodes, of those under a limit."""

    def rule(entity: Mapping[str, Any]) -> str:
        if entity["cause"] == "controller_mutation":
            return OF_MUTATIONS + str(entity["decided_by"]["rule"]["name"])
        return str(entity["rule"]["name"])

    return {
        (entity["quota_type"], entity["user"], entity["client_id"]): Row(
            throttle_seconds=entity["throttle_time_seconds"] or 0, used=entity["utilization"], rule=rule(entity)
        )
        for entity in entities
        if entity["limit_state"] == "limited" and entity["utilization"] is not None
    }


def of_tables(html: str) -> Rows:
    """Return the rows of a page's tables of entities, of those under a limit."""
    rows = dict[Entity, Row]()
    for line in _Tables(html).lines:
        if not line.keys() >= {"Quota", "Used", "Throttle", "Rule"} or not line["Used"].endswith("%"):
            continue
        address = parse_qs(urlsplit(line["href"]).query)
        user, client_id = (address.get(name, [""])[0] for name in ("user", "client_id"))
        rows[line["Quota"].replace(" ", "_"), user, client_id] = Row(
            throttle_seconds=float(line["Throttle"].removesuffix(" s")), used=ratio(line["Used"]), rule=line["Rule"]
        )
    return rows


def of_rules(html: str) -> Mapping[tuple[str, str], tuple[str, str]]:
    """Return the cells *entities* and *throttled* by quota type and rule of the page of rules."""
    return {
        (line["Quota"].replace(" ", "_"), line["name"]): (line["Entities"], line["Throttled"])
        for line in _Tables(html).lines
        if "Entities" in line
    }


def of_terminal(text: str, entities: Mapping[str, tuple[str, str]]) -> Rows:
    """Return the rows that `status` and `top` print; `entities` are user and client-id by the words for them."""
    return {
        (
            {"controller": "controller_mutation"}.get(match["quota"], match["quota"]),
            *entities.get(match["entity"], (match["entity"], "?")),
        ): Row(throttle_seconds=float(match["throttle"]), used=ratio(match["used"]), rule=match["rule"])
        for line in text.splitlines()
        for match in [_TERMINAL.match(line)]
        if match
    }


def of_alerts(alerts: Iterable[Mapping[str, Any]], rules: Mapping[str, str]) -> Rows:
    """Return the rows of the alerts on throttled entities; `rules` are names by the words for them there."""
    rows = dict[Entity, Row]()
    for alert in alerts:
        labels = alert["labels"]
        if not _THROTTLED.fullmatch(labels["alertname"]) or labels["scope"] != "entity":
            continue
        text = alert["annotations"]["description"]
        match = _ALERT.search(text)
        assert match, text
        rows[labels["quota_type"], labels.get("user", ""), labels.get("client_id", "")] = Row(
            throttle_seconds=float(match["throttle"]) / (1000 if match["unit"] == "ms" else 1),
            used=float(match["used"]) / 100,
            rule=rules.get(match["rule"], match["rule"]),
        )
    return rows


def ratio(words: str) -> float:
    """Return a percentage of a table as a ratio, half a percent for `<1%`."""
    return 0.005 if words == "<1%" else float(words.removesuffix("%")) / 100


class _Tables(HTMLParser):
    """The rows of all tables: text by the label of its cell, `name` and `href` of the first."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.lines: list[dict[str, str]] = []
        self._cell = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "tr":
            self.lines.append({})
        elif tag == "th" and attributes.get("scope") == "row":
            self._cell = "name"
        elif tag == "td":
            self._cell = attributes.get("data-label") or ""
        elif tag == "a" and self._cell == "name":
            self.lines[-1]["href"] = attributes.get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in {"th", "td"}:
            self._cell = ""

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.lines[-1][self._cell] = (self.lines[-1].get(self._cell, "") + data).strip()
