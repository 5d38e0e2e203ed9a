"""The rules as files for Prometheus, and for the Prometheus operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .book import alert_groups, recording_groups
from .decoration import as_group
from .links import Site
from .rule import Group
from .yaml_text import yaml_text

NOTE = "Written by `quotascope alerts write`; changes here are lost."


def recording_file(site: Site) -> str:
    """The recording rules, for ``rule_files``."""
    return yaml_text(NOTE, _spec(site, recording_groups(site)))


def alerts_file(site: Site) -> str:
    """The alerts, for ``rule_files``; they need the recording rules."""
    return yaml_text(NOTE, _spec(site, alert_groups(site)))


def operator_file(site: Site) -> str:
    """Both as one ``PrometheusRule``."""
    groups = (*recording_groups(site), *alert_groups(site))
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "quotascope",
            "labels": {"app.kubernetes.io/name": "quotascope"},
        },
        "spec": _spec(site, groups),
    }
    return yaml_text(NOTE, resource)


def _spec(site: Site, groups: Iterable[Group]) -> dict[str, Any]:
    return {"groups": [as_group(site, group) for group in groups]}
