"""
The rules of a site: the texts in ``rules/``, filled in and as Prometheus reads them.

A text is a file of rules with three additions. ``${name}`` stands for a value of the site (the label of its clusters,
a threshold, a threshold times 100 as ``${NAME_PERCENT}``) or for a part of ``parts.yaml``. A line of an expression that
ends in ``# if NAME`` is kept only if the site writes the alert of that name, or if that value is known. This module
adds the links and labels of the site to all alerts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from math import floor, log10
from typing import Any, Final

import yaml

from .durations import duration_seconds, duration_text
from .links import Site, dashboard_url, entity_url, named_runbook_url
from .settings import Profile, literal, matchers, quoted, team_label
from .thresholds import thresholds

Rule = dict[str, Any]
"""A recording rule or an alert, as in a file of rules."""
RuleGroup = dict[str, Any]
"""Rules that Prometheus evaluates one after the other, as in a file of rules."""

TEXTS: Final = ("recording", "teams", "objectives", "clients", "shadow", "brokers", "exporter", "jobs")
"""The files of rules, in the order in which they are written."""
PARTS: Final = "parts"
_PLACE: Final = re.compile(r"(^ *)?\$\{(\w+)\}", re.MULTILINE)
_CONDITION: Final = "  # if "
_SHORTEST_WINDOW: Final = 120
"""Seconds in which each rule is evaluated at least once."""
_THRESHOLDS: Final = "thresholds"
"""Key of an alert for thresholds of its recorded series; thresholds of its own expression need no naming."""
_PROFILES: Final = "profiles"
"""Key of an alert for the profiles that have it; an alert without this key is in `Profile.ALL` alone."""
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def text(name: str) -> Any:  # noqa: ANN401 - YAML
    """Return a text of ``rules/`` as it stands there."""
    content = files(__package__).joinpath("rules", f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(content, _LOADER)  # noqa: S506 - the safe loader, in C if available


def recording_groups(site: Site) -> list[RuleGroup]:
    """Return the groups of recording rules."""
    return [*_groups(site, "record", _texts_of(site))]


def alert_groups(site: Site) -> list[RuleGroup]:
    """Return the groups of the alerts that the site writes."""
    return [*_groups(site, "alert", _texts_of(site))]


def profiles_of(alert: str) -> tuple[Profile, ...]:
    """Return the profiles that have an alert."""
    return tuple(Profile(name) for name in alert_texts()[alert].get(_PROFILES, [Profile.ALL]))


def is_enabled(site: Site, alert: str) -> bool:
    """Decide whether a site enables an alert, by its settings or else by the profile."""
    settings = site.alerts.get(alert)
    if settings is None or settings.enabled is None:
        return site.profile in profiles_of(alert)
    return settings.enabled


def records(site: Site) -> Iterator[Rule]:
    """Yield all recording rules, each with its ``meaning`` for the documentation."""
    fill = Filling(site)
    for name in _texts_of(site):
        for rule in _rules(name, "record"):
            yield {**fill.record(rule), "meaning": fill.description(rule["meaning"])}


def alerts(site: Site) -> Iterator[Rule]:
    """Yield all alerts with the settings of the site, including alerts that it does not write."""
    fill = Filling(site)
    for name in TEXTS:
        yield from (fill.alert(rule) for rule in _rules(name, "alert"))


@cache
def thresholds_of(alert: str) -> tuple[str, ...]:
    """Return the names of the thresholds of an alert and of its recorded series, in the order of ``thresholds()``."""
    rule = alert_texts()[alert]
    names = {*rule.get(_THRESHOLDS, ()), *_places(rule["expr"])}
    return tuple(name for name, _ in thresholds() if name in names)


def _places(text: str) -> set[str]:
    """Return the names of the placeholders in a text and in its parts."""
    names = {name for _, name in _PLACE.findall(text)}
    return names.union(*(_places(_parts()[name]) for name in names & _parts().keys()))


def _texts_of(site: Site) -> list[str]:
    absent = {"teams"} if not site.has_teams else set[str]()
    if not site.objectives:
        absent.add("objectives")
    return [name for name in TEXTS if name not in absent]


def _rules(name: str, kind: str) -> Iterator[Rule]:
    for group in text(name)["groups"]:
        yield from (rule for rule in group["rules"] if kind in rule)


@cache
def alert_texts() -> dict[str, Rule]:
    """Return all alerts by name, as they stand in ``rules/``."""
    return {rule["alert"]: rule for name in TEXTS for rule in _rules(name, "alert")}


def _groups(site: Site, kind: str, names: list[str]) -> Iterator[RuleGroup]:
    fill = Filling(site)
    for name in names:
        for group in text(name)["groups"]:
            rules = [
                fill.record(rule) if kind == "record" else fill.alert(rule)
                for rule in group["rules"]
                if kind in rule and (kind == "record" or rule[kind] in fill.names)
            ]
            if rules:
                yield {**group, "rules": rules}


def threshold_texts(site: Site) -> dict[str, str]:
    """Return the values of thresholds as texts, by name, and rounded percentages as ``NAME_PERCENT`` for people."""
    values = site.values()
    exact = {name: f"{value:.15g}" for name, value in values.items()}
    return exact | {f"{name}_PERCENT": short(value * 100) for name, value in values.items()}


def short(value: float) -> str:
    """
    Return a number as people read it, with four digits, or whole; ``mixin.libsonnet`` does the same.

    >>> short(200 / 3), short(0.07 * 100), short(12345.6), short(0.0)
    ('66.67', '7', '12346', '0')
    """
    scale = 10.0 ** max(0, 3 - floor(log10(value))) if value > 0 else 1.0
    return f"{floor(value * scale + 0.5) / scale:.15g}"


class Filling:
    """The values of a site, which fill rules in."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._values = {"cluster": site.cluster_label, "system_users": quoted(site.system_users)[1:-1]}
        self._values |= threshold_texts(site)
        self._rounded = {name: short(value) for name, value in site.values().items()}
        self.names = {name for name in alert_texts() if is_enabled(site, name)}
        """Names that hold in a condition: alerts that are written, and values that are known."""
        near = ("KafkaQuotaNearLimit", "KafkaQuotaManyNearLimit")
        shortest = min(duration_seconds(site.wait(name, alert_texts()[name]["for"])) for name in near) - 60
        if shortest >= _SHORTEST_WINDOW:
            self.names.add("near_window")
            self._values["near_window"] = duration_text(shortest - 1)
        self._values["owned_entities"] = self._owned_entities()
        self._values["budget_burns"] = self._budget_burns()

    def record(self, rule: Rule) -> Rule:
        """Return a recording rule as Prometheus reads it."""
        return {"record": rule["record"], "expr": self.expression(rule["expr"])}

    def alert(self, rule: Rule) -> Rule:
        """Return an alert as Prometheus reads it, with the labels and links of the site."""
        site, name, labels = self._site, rule["alert"], rule["labels"]
        settings = site.alerts.get(name)
        wait, keep = rule["for"], rule.get("keep_firing_for")
        if settings is not None:
            labels = {**labels, "severity": settings.severity.value}
            wait, keep = settings.wait, settings.keep
        is_entity = labels["scope"] == "entity"
        added_labels = {**site.labels, **(settings.labels if settings else {})}
        if is_entity and site.has_teams:
            added_labels["team"] = team_label(site.teams, added_labels.get("team"))
        if labels["scope"] == "team":
            added_labels.pop("team", None)  # the series has it
        annotations = rule["annotations"]
        links = {
            "runbook_url": named_runbook_url(site, name, is_entity=is_entity),
            "dashboard_url": dashboard_url(site, annotations["dashboard_url"]),
            "entity_url": entity_url(site) if is_entity else None,
        }
        return {
            "alert": name,
            "expr": self.expression(rule["expr"]),
            "for": wait,
            **({} if keep is None else {"keep_firing_for": keep}),
            "labels": {**labels, **{label: value for label, value in added_labels.items() if value}},
            "annotations": {
                "summary": annotations["summary"],
                "description": self.description(annotations["description"]),
                # no link is better than a link to nowhere
                **{link: url for link, url in links.items() if url is not None},
            },
        }

    def expression(self, text: str) -> str:
        """Return an expression, without the lines whose condition does not hold."""
        lines = (line.partition(_CONDITION) for line in text.splitlines())
        return _filled("\n".join(code for code, _, terms in lines if self._holds(terms)), self._values)

    def description(self, text: str) -> str:
        """Return a text for people, in one line."""
        return _filled(text, self._values | self._rounded).replace("\n", "")

    def _holds(self, terms: str) -> bool:
        """Return whether the site enables each alert that the terms name, and no alert after `not`."""
        for term in filter(None, terms.split(", ")):
            name = term.removeprefix("not ")
            is_wanted = name == term
            if (name in self.names) != is_wanted:
                return False
        return True

    def _owned_entities(self) -> str:
        entities = (_filled(part, self._values | values) for part, values in team_parts(self._site))
        return f"\nor on ({self._site.cluster_label}, user, client_id)\n".join(entities)

    def _budget_burns(self) -> str:
        burns = (_filled("${budget_burn}", self._values | values) for values in objective_values(self._site))
        return "\nor\n".join(burns)


def team_parts(site: Site) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the parts of the expression of teams, each with its values; the first match of an entity counts."""
    for team in site.teams:
        for clients in team.clients:
            values = {"clients": f"{{{','.join(matchers(clients))}}}", "team": quoted(literal(team.name))}
            yield "${owned_by}", values
    yield "${owned}", {"clients": ""}


def objective_values(site: Site) -> Iterator[dict[str, str]]:
    """Yield the values of the part ``budget_burn`` for each objective."""
    for objective in site.objectives:
        yield {
            "clients": ",".join(matchers(objective.clients)),
            "tolerated_seconds": f"{objective.tolerated_seconds:.15g}",
            "budget": f"{objective.budget:.15g}",
            "objective": quoted(literal(objective.name)),
        }


def _filled(text: str, values: Mapping[str, str]) -> str:
    """
    Return a text with values and parts in place of its placeholders.

    Values are used as they are; parts may have placeholders of their own.
    """

    def value(place: re.Match[str]) -> str:
        indent, name = place[1] or "", place[2]
        filling = values[name] if name in values else _filled(_parts()[name], values)
        return indent + filling.replace("\n", f"\n{indent}")

    return _PLACE.sub(value, text)


def _parts() -> dict[str, str]:
    parts: dict[str, str] = text(PARTS)
    return parts
