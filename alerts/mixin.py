"""
The rules and dashboards as a monitoring mixin: one file of jsonnet. Its ``_config`` has the keys of a configuration of the alerts.

All is made as for `alerts write`, but for a site with marks as values: jsonnet puts the values of ``_config`` in their places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from textwrap import wrap
from typing import Any, Final

from .book import alert_groups, alerts, recording_groups
from .errors import InvalidSite
from .files import decorate
from .links import ALERT, TAKEN, Site
from .promql import quoted
from .rule import Alert, RuleGroup
from .settings import AlertSettings, owner_label
from .thresholds import thresholds

_STORM: Final = "KafkaQuotaThrottleStorm"
_MANY_NEAR: Final = "KafkaQuotaManyNearLimit"
_RUNBOOK: Final = "https://runbook.invalid/"
_GRAFANA: Final = "https://grafana.invalid"
_CLUSTER: Final = "zqclusz"
_OWNER: Final = "zqowner"
_USERS: Final = "zqusers"
_WINDOW: Final = "[98m"
"""What a `for` of 99 minutes becomes in `KafkaQuotaThrottleStorm` and the alerts that look at its number."""
_THIS: Final = "WINDOW"
"""In a condition: what jsonnet makes of that `for`."""
_FIRST: Final = 0xE000
_FILL: Final = "\uf8ff"
_WIDTH: Final = 110

Boards = Callable[[Site], Mapping[str, Any]]
"""Makes the dashboards of a site, by uid."""


class _Marked(float):
    """The value of a threshold that leaves a mark where it is written into a text."""

    marks: _Marks
    expression: str

    @classmethod
    def of(cls, value: float, marks: _Marks, expression: str) -> _Marked:
        made = cls(value)
        made.marks, made.expression = marks, expression
        return made

    def __format__(self, spec: str) -> str:
        function = {".15g": "exact", "g": "short"}[spec]
        expression = f"{function}({self.expression})"
        return self.marks.put(expression, len(format(float(self), spec)))

    def __mul__(self, other: float) -> _Marked:
        expression = f"{self.expression} * {other:.15g}"
        return self.of(float(self) * other, self.marks, expression)


@dataclass(frozen=True, slots=True)
class _Marks:
    """Characters for private use that stand for expressions of jsonnet."""

    expressions: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    """Marks of the values that must be labels, patterns or addresses, by what stands for them until a text is written."""

    def put(self, expression: str, length: int) -> str:
        """A mark as long as the default's text, so that lines break where they do with it."""
        if expression not in self.expressions:
            self.expressions.append(expression)
        mark = chr(_FIRST + self.expressions.index(expression))
        return mark.ljust(length, _FILL)

    def site(self, site: Site) -> Site:
        """The same site with a mark for each value of ``_config``."""
        label = _CLUSTER.ljust(len(site.cluster_label), "z")
        users = _USERS.ljust(len(quoted(site.system_users)) - 2, "z")
        self.words[label] = self.put("label", len(site.cluster_label))
        self.words[users] = self.put("users", len(users))
        self.words[_GRAFANA] = self.put("grafana", 1)
        return replace(
            site,
            cluster_label=label,
            system_users=users,
            runbook_url=f"{_RUNBOOK}{ALERT}",
            grafana_url=_GRAFANA,
            thresholds={one: _Marked.of(site.value(one), self, f"c.thresholds.{name}") for name, one in thresholds()},
            labels={},
            alerts={alert.name: _settings(alert, "99m") for alert in alerts(site)},
        )

    def text(self, text: str) -> str:
        """A text with marks as an expression of jsonnet."""
        for word, mark in self.words.items():
            text = text.replace(word, mark)
        text = re.sub(rf"{_RUNBOOK}(\w+)", lambda found: self.put(f"runbook({_json(found[1])})", 1), text)
        parts = re.split(f"([\ue000-\uf8fe]){_FILL}*", text)
        return " + ".join(
            self.expressions[ord(part) - _FIRST] if number % 2 else _json(part)
            for number, part in enumerate(parts)
            if part or len(parts) == 1
        )

    def jsonnet(self, value: Any, indent: int = 0) -> str:  # noqa: ANN401 - JSON
        """A document with marks as an expression of jsonnet."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, _Marked):
            return value.expression
        if isinstance(value, Mapping):
            fields = [f"{_key(self.text(key), each)}: {self.jsonnet(each, indent + 2)}," for key, each in value.items()]
            return _block("{", fields, "}", indent)
        if isinstance(value, list | tuple):
            items = [_item(each, self.jsonnet(each, indent + 2)) for each in value]
            array = _block("[", items, "]", indent)
            if _steps(value):
                return f"std.sort({array}, value)"
            return f"linked({array})" if any(map(_link_of, value)) else array
        return _json(value)

    def expression(self, alert: Alert, others: Mapping[str, Mapping[str, str]]) -> str:
        """The expression of an alert, and the others that it has on conditions."""
        window = f"window({_json(alert.name)})"
        mark = f"[{self.put(window, len(_WINDOW) - 1)}"
        found = self.text(alert.expr.replace(_WINDOW, mark))
        for condition, exprs in others.items():
            other = self.text(exprs[alert.name].replace(_WINDOW, mark))
            if other != found:
                on = condition.replace(_THIS, window)
                found = f"if {on} then {other} else {found}"
        return found


def mixin_file(site: Site, boards: Boards) -> str:
    """
    The mixin. What the site sets is the default of its ``_config``; its owners and objectives are fixed.

    With these defaults the rules are those of `rule_files`.

    Raises:
        InvalidSite: A name of an owner or objective has characters that mark places here.

    """
    fixed = [[*map(asdict, site.owners)], [*map(asdict, site.objectives)]]
    if re.search(f"[\ue000-{_FILL}]", _json([*fixed, site.default_owner])):
        raise InvalidSite(
            "a mixin cannot have owners and objectives with characters for private use (U+E000 to U+F8FF)"
        )
    marks = _Marks()
    marked = marks.site(site)
    groups = alert_groups(marked)
    named = {rule.name for group in groups for rule in group.rules}
    dashboards = {f"{uid}.json": board for uid, board in boards(marked).items()}
    parts = {
        "CONFIG": "\n".join(_config(site, named)),
        "TAKEN": _json(sorted(TAKEN)),
        "OWNED": _json(site.has_owners),
        "RULES": "\n".join(_groups(marked, marks, recording_groups(marked))),
        "ALERTS": "\n".join(_groups(marked, marks, groups)),
        "DASHBOARDS": marks.jsonnet(dashboards, 2),
    }
    text = files(__package__).joinpath("mixin.libsonnet").read_text(encoding="utf-8")
    return re.sub(r"^ *// @(\w+)$|@(\w+)@", lambda found: parts[found[1] or found[2]], text, flags=re.MULTILINE)


def _groups(marked: Site, marks: _Marks, groups: Iterable[RuleGroup]) -> Iterator[str]:
    others = {
        f"{_THIS} == null": _exprs(marked, "1m"),
        f"!c.alerts.{_STORM}.enabled": _exprs(marked, "99m", _STORM),
        f"!c.alerts.{_MANY_NEAR}.enabled": _exprs(marked, "99m", _MANY_NEAR),
    }
    for group in groups:
        yield f"      {{\n        name: {_json(group.name)},"
        if group.interval is not None:
            yield f"        interval: {_json(group.interval)},"
        yield "        rules: ["
        for rule in group.rules:
            if isinstance(rule, Alert):
                made = decorate(marked, rule)
                labels = {"scope": rule.scope.value}
                yield f"          alert({_json(rule.name)}, {{"
                yield f"            expr: {marks.expression(rule, others)},"
                yield f"            labels: {marks.jsonnet(labels, 12)},"
                if "owner" in made["labels"]:
                    yield f"            owner(set): {_owner(marked, marks)},"
                yield f"            annotations: {marks.jsonnet(made['annotations'], 12)},"
                yield "          }),"
            else:
                record, expr = _json(rule.name), marks.text(rule.expr)
                yield f"          {{ record: {record}, expr: {expr} }},"
        yield "        ],\n      },"


def _owner(site: Site, marks: _Marks) -> str:
    """The label of owners; where none is the default, a label `owner` that is set takes its place."""
    found = marks.text(owner_label(site.owners, site.default_owner))
    if site.default_owner is not None:
        return found
    mark = marks.put("std.escapeStringJson(set)", len(_OWNER) + 2)
    other = owner_label(site.owners, _OWNER).replace(f'"{_OWNER}"', mark)
    return f"if set != '' then {marks.text(other)} else {found}"


def _settings(alert: Alert, wait: str, *, enabled: bool = True) -> AlertSettings:
    return AlertSettings(enabled=enabled, severity=alert.severity, wait=wait, keep=alert.keep)


def _exprs(marked: Site, wait: str, without: str = "") -> dict[str, str]:
    """The expressions of all alerts where each has this `for`, and one is off."""
    every = alerts(marked)
    settings = {a.name: _settings(a, wait, enabled=a.name != without) for a in every}
    return {a.name: a.expr for a in alerts(replace(marked, alerts=settings))}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _block(begin: str, items: list[str], end: str, indent: int) -> str:
    if not items:
        return begin + end
    inner = "".join(f"{' ' * (indent + 2)}{item}\n" for item in items)
    return f"{begin}\n{inner}{' ' * indent}{end}"


def _is_link(value: object) -> str:
    """Which address a text begins with."""
    if isinstance(value, str):
        for start, name in ((_RUNBOOK, "runbook_url"), (_GRAFANA, "grafana_url")):
            if value.startswith(start):
                return name
    return ""


def _key(name: str, value: object) -> str:
    """A field's name, which is an expression of jsonnet; a link that leads nowhere has none."""
    link = _is_link(value)
    if link:
        return f"[if c.{link} != null then {name}]"
    return name if name.startswith('"') else f"[{name}]"


def _link_of(value: object) -> str:
    return _is_link(value.get("url")) if isinstance(value, Mapping) else ""


def _item(value: object, text: str) -> str:
    """An element of an array; a link that leads nowhere is null."""
    link = _link_of(value)
    return f"if c.{link} != null then {text}," if link else f"{text},"


def _steps(value: list[Any] | tuple[Any, ...]) -> bool:
    """Whether these are colors with thresholds, which stand in the order of their values."""
    return any(isinstance(each, Mapping) and isinstance(each.get("value"), _Marked) for each in value)


def _config(site: Site, named: set[str]) -> Iterator[str]:
    """The lines of ``_config``."""

    def said(indent: int, text: str) -> Iterator[str]:
        for line in wrap(text, _WIDTH - indent, break_on_hyphens=False):
            yield f"{' ' * indent}// {line}"

    every = [alert for alert in alerts(site) if alert.name in named]
    yield from said(4, "Label that distinguishes the clusters in one Prometheus; it need not exist.")
    yield f"    cluster_label: {_json(site.cluster_label)},"
    yield from said(
        4,
        "Address of the runbooks, with {alert} for the alert's name, such as https://quotascope.corp/runbooks/{alert} of an exporter; null: no links.",
    )
    yield f"    runbook_url: {_json(site.runbook_url)},"
    yield from said(4, "Address of the Grafana that has the dashboards; null: no links.")
    yield f"    grafana_url: {_json(site.grafana_url)},"
    yield from said(
        4, "Users and client-ids of the platform's own programs, which a default quota should not throttle."
    )
    yield f"    system_users: {_json(site.system_users)},"
    yield from said(4, "Additional labels of all alerts.")
    yield f"    labels: {_json(dict(site.labels))},"
    yield from said(4, "The values at which alerts fire.")
    yield "    thresholds: {"
    for name, one in thresholds():
        yield from said(6, f"{one.unit}: {one.meaning}. Reason: {one.reason}. Other values: {one.change}.")
        yield f"      {name}: {site.value(one):.15g},"
    yield "    },"
    yield from said(4, "Each alert; severity: critical, warning or info; keep_firing_for may be null.")
    yield "    alerts: {"
    for alert in every:
        found = site.alerts.get(alert.name)
        yield from said(6, alert.summary)
        yield f"      {alert.name}: {{"
        yield f"        enabled: {_json(site.enabled(alert.name))},"
        yield f"        severity: {_json(alert.severity.value)},"
        yield f"        'for': {_json(alert.wait)},"
        yield f"        keep_firing_for: {_json(alert.keep)},"
        yield f"        labels: {_json(dict(found.labels) if found else {})},"
        yield "      },"
    yield "    },"
