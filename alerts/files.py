"""Everything that `quotascope alerts write` writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from quotascope.pages.files import put_all

from .alertmanager import alertmanager_example
from .book import alert_groups, recording_groups
from .errors import CannotWrite
from .links import Site, dashboard_url, runbook_url
from .rule import Alert, Record, RuleGroup
from .runbook import runbooks
from .settings import owner_label

_RULES_NOTE: Final = "Written by `quotascope alerts write`; changes here are lost."
_ALERTMANAGER_NOTE: Final = (
    "An example written by `quotascope alerts write`: copy what you need, and put your own receivers in."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Files beside the rules, each with a place of its own; None for those that are not written."""

    alertmanager: Path | None = None
    """An example of routes and inhibition."""
    prometheus_rule: Path | None = None
    """The rules as a resource of the Prometheus operator."""
    runbooks: Path | None = None
    """A folder for the runbooks, in Markdown."""


def rule_files(site: Site) -> dict[str, str]:
    """The files for ``rule_files`` of Prometheus, by name; these are committed for the default site."""
    return {
        "quotascope-recording.yaml": _yaml(_RULES_NOTE, _rules(site, recording_groups(site))),
        "quotascope-alerts.yaml": _yaml(_RULES_NOTE, _rules(site, alert_groups(site))),
    }


def write(folder: Path, site: Site, extras: Extras | None = None) -> list[Path]:
    """
    Write the rules into a folder of their own, and the extras to their places; all files or none.

    Returns:
        The files, the rules first.

    Raises:
        CannotWrite: A file or folder cannot be made, or an extra would lie where Prometheus takes it for rules.

    """
    extras = extras or Extras()
    elsewhere: list[tuple[Path, str]] = []
    if extras.alertmanager is not None:
        elsewhere.append((extras.alertmanager, alertmanager_file(site)))
    if extras.prometheus_rule is not None:
        elsewhere.append((extras.prometheus_rule, operator_file(site)))
    if extras.runbooks is not None:
        for alert, text in runbooks(site):
            elsewhere.append((extras.runbooks / f"{alert}.md", text))
    texts = {folder / name: text for name, text in rule_files(site).items()}
    for path, text in elsewhere:
        if path.resolve().is_relative_to(folder.resolve()):
            raise CannotWrite(
                f"{path} would be read as rules where rule_files takes all of {folder}: choose another folder for it"
            )
        if path in texts:
            raise CannotWrite(f"{path}: two outputs cannot be one file")
        texts[path] = text
    try:
        put_all(texts, make_folders=True)
    except OSError as error:
        raise CannotWrite(f"{error.filename} cannot be written: {error.strerror}") from error
    return list(texts)


def operator_file(site: Site) -> str:
    """The recording rules and the alerts as one ``PrometheusRule``."""
    groups = (*recording_groups(site), *alert_groups(site))
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "quotascope",
            "labels": {"app.kubernetes.io/name": "quotascope"},
        },
        "spec": _rules(site, groups),
    }
    return _yaml(_RULES_NOTE, resource)


def alertmanager_file(site: Site) -> str:
    """Routes, groups and inhibition rules for Alertmanager."""
    return _yaml(_ALERTMANAGER_NOTE, alertmanager_example(site))


def _rules(site: Site, groups: Iterable[RuleGroup]) -> dict[str, Any]:
    """Groups as Prometheus reads them."""
    return {
        "groups": [
            {
                "name": group.name,
                **({} if group.interval is None else {"interval": group.interval}),
                "rules": [
                    {"record": rule.name, "expr": rule.expr} if isinstance(rule, Record) else decorate(site, rule)
                    for rule in group.rules
                ],
            }
            for group in groups
        ]
    }


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
    settings = site.alerts.get(alert.name)
    ours = {**site.labels, **(settings.labels if settings else {})}
    if "user" in alert.labels and site.has_owners:
        default = site.default_owner or ours.get("owner")
        ours["owner"] = owner_label(site.owners, default)
    return rule | {
        "labels": {
            "severity": alert.severity.value,
            "scope": alert.scope.value,
            **{name: text for name, text in ours.items() if text},
        },
        "annotations": {
            "summary": alert.summary,
            # the name of the cluster, where it has one
            "description": f"{{{{ with $labels.{site.cluster_label} }}}}[{{{{ . }}}}] {{{{ end }}}}{alert.description}",
            # no link rather than one that leads nowhere
            **{name: url for name, url in links.items() if url is not None},
        },
    }


_WIDTH = 100_000  # no line is broken but where the expression breaks it


class _Dumper(yaml.SafeDumper):
    """Writes several lines as a block."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _yaml(note: str, document: Mapping[str, Any]) -> str:
    """The document with a comment in front, in the order of its keys."""
    text = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"# {note}\n{text}"
