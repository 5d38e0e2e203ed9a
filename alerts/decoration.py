"""What all rules have in common when they are written: severity, headline, links."""

from __future__ import annotations

from typing import Any

from .links import Site, dashboard_url, runbook_url
from .rule import Alert, Group, Record
from .text import cluster_prefix


def as_group(site: Site, group: Group) -> dict[str, Any]:
    """A group as Prometheus reads it."""
    head: dict[str, Any] = {"name": group.name}
    if group.interval is not None:
        head["interval"] = group.interval
    return head | {"rules": [_as_rule(site, rule) for rule in group.rules]}


def _as_rule(site: Site, rule: Record | Alert) -> dict[str, Any]:
    if isinstance(rule, Record):
        return {"record": rule.name, "expr": rule.expr}
    return decorate(site, rule)


def decorate(site: Site, alert: Alert) -> dict[str, Any]:
    """An alert as Prometheus reads it, with all that every alert has."""
    rule: dict[str, Any] = {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.wait,
    }
    if alert.keep is not None:
        rule["keep_firing_for"] = alert.keep
    labels = (site.cluster_label, *alert.labels)
    links = {
        "runbook_url": runbook_url(site, alert.name),
        "dashboard_url": dashboard_url(site, alert.dashboard, labels),
    }
    return rule | {
        "labels": {"severity": alert.severity.value, "scope": alert.scope.value},
        "annotations": {
            "summary": alert.summary,
            "description": cluster_prefix(site.cluster_label) + alert.description,
            # no link rather than one that leads nowhere
            **{name: url for name, url in links.items() if url is not None},
        },
    }
