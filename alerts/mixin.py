"""The rules and dashboards as a monitoring mixin: ``mixin.libsonnet`` and its imports in one file."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from .links import ALERT, TAKEN, Site
from .render import objective_values, team_parts
from .settings import condition

CLUSTER_LABEL: Final = "CLUSTER_LABEL"
"""Placeholder of the label of clusters in the dashboards of a mixin."""
RUNBOOKS: Final = f"https://runbook.invalid/{ALERT}"
"""Placeholder of the address of runbooks in the dashboards of a mixin."""
_IMPORT: Final = re.compile(r"importstr '([^']+)'")


def mixin_file(site: Site, config: str, dashboards: Mapping[str, Any]) -> str:
    """
    Return the mixin. Settings of the site are the defaults of its ``_config``; teams and objectives are fixed.

    With these defaults the rules are those of `rule_files`.

    Args:
        site: Settings whose defaults differ from ``config``.
        config: The reference of the configuration of alerts, as YAML.
        dashboards: Dashboards by file name, with `CLUSTER_LABEL`, `RUNBOOKS` and names of thresholds as placeholders.

    """
    contents = {"alerts.yaml": config, "site.json": _json(_of_site(site)), "dashboards.json": _json(dashboards)}
    folder = files(__package__)

    def block(place: re.Match[str]) -> str:
        name = place[1]
        content = contents[name] if name in contents else folder.joinpath(name).read_text(encoding="utf-8")
        return f"|||\n{textwrap.indent(content, '  ')}|||"

    return _IMPORT.sub(block, folder.joinpath("mixin.libsonnet").read_text(encoding="utf-8"))


def _of_site(site: Site) -> dict[str, Any]:
    return {
        "cluster_label": site.cluster_label,
        "exporter_url": site.exporter_url,
        "runbook_url": site.runbook_url,
        "grafana_url": site.grafana_url,
        "system_users": site.system_users,
        "labels": dict(site.labels),
        "profile": site.profile.value,
        "thresholds": site.values(),
        "alerts": {
            name: {
                "enabled": settings.enabled,
                "severity": settings.severity.value,
                "for": settings.wait,
                "keep_firing_for": settings.keep,
                "labels": dict(settings.labels),
            }
            for name, settings in site.alerts.items()
        },
        "has_teams": site.has_teams,
        "cases": [
            {"condition": condition(clients), "team": team.name} for team in site.teams for clients in team.clients
        ],
        "owned": [{"part": part, "values": values} for part, values in team_parts(site)],
        "objectives": [*objective_values(site)],
        "taken": sorted(TAKEN),
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
