"""The dashboards as files, and provisioning files that make a Grafana load them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from quotascope.alerts import Site
from quotascope.alerts.mixin import CLUSTER_LABEL, RUNBOOKS
from quotascope.pages.files import put_all

from .errors import DashboardsNotWritten, GrafanalibMissing
from .schema_v2 import resource
from .scope import Scope
from .steps import at_thresholds, by_names


class Schema(StrEnum):
    """The form of a dashboard's JSON."""

    CLASSIC = "classic"
    """Grafana 12 and 13."""
    V2 = "v2"
    """Grafana 13: rows that are often empty are there only while they have data."""


FOLDER = "Kafka quotas"
_PROVIDER = """\
# Makes Grafana load the dashboards beside this file; copy it to /etc/grafana/provisioning/dashboards/.
apiVersion: 1
providers:
  - name: quotascope
    folder: {folder}
    type: file
    allowUiUpdates: false
    updateIntervalSeconds: 60
    options:
      path: {path}
"""
_DATASOURCE = """\
# An example of a Prometheus as data source. Leave it out if Grafana has it already.
# Copy it to /etc/grafana/provisioning/datasources/.
apiVersion: 1
datasources:
  - name: Prometheus
    type: prometheus
    access: proxy
    url: http://prometheus:9090
    jsonData:
      httpMethod: POST
      timeInterval: 30s # scrape_interval of the exporter: graphs look wrong with another one
"""


def grafana_dashboards(scope: Scope) -> dict[str, dict[str, Any]]:
    """
    Return the JSON models of all dashboards by uid.

    Raises:
        GrafanalibMissing: The extra ``dashboards`` is not installed.

    """
    return {uid: at_thresholds(scope.site, model) for uid, model in _models(scope).items()}


def mixin_dashboards(site: Site) -> dict[str, dict[str, Any]]:
    """
    Return the JSON models by file name, with placeholders that a mixin fills in.

    They are `CLUSTER_LABEL`, `RUNBOOKS` and the names of thresholds.

    Raises:
        GrafanalibMissing: The extra ``dashboards`` is not installed.

    """
    scope = Scope(site=replace(site, cluster_label=CLUSTER_LABEL, runbook_url=RUNBOOKS))
    return {f"{uid}.json": by_names(model) for uid, model in _models(scope).items()}


def _models(scope: Scope) -> dict[str, dict[str, Any]]:
    """
    Return the models with `Threshold` objects in them.

    Raises:
        GrafanalibMissing: The extra ``dashboards`` is not installed.

    """
    try:
        from .boards import boards  # noqa: PLC0415  # their library is an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "grafanalib":
            raise
        raise GrafanalibMissing(
            "dashboards are made with grafanalib, which is not installed; in a clone of quotascope: "
            "pip install '.[dashboards]'"
        ) from error
    return {model["uid"]: model for model in boards(scope)}


def file_text(dashboard: Mapping[str, Any]) -> str:
    """Return a dashboard as JSON with sorted keys, so that a diff shows changes only."""
    return json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write(folder: Path, scope: Scope, schema: Schema = Schema.CLASSIC) -> list[Path]:
    """
    Write dashboards and provisioning files, all or none, and return their paths.

    Args:
        folder: It is created.
        scope: Of the dashboards.
        schema: Of the dashboards' JSON.

    Raises:
        GrafanalibMissing: The extra ``dashboards`` is not installed.
        DashboardsNotWritten: The folder or a file cannot be written.

    """
    models = grafana_dashboards(scope)
    if schema is Schema.V2:
        models = {uid: resource(model) for uid, model in models.items()}
    inner = folder / "dashboards"
    texts = {inner / f"{uid}.json": file_text(model) for uid, model in models.items()}
    path = json.dumps(str(inner.absolute()), ensure_ascii=False)
    texts[folder / "provisioning" / "dashboards.yaml"] = _PROVIDER.format(folder=FOLDER, path=path)
    texts[folder / "provisioning" / "datasource-example.yaml"] = _DATASOURCE
    try:
        put_all(texts, make_folders=True)
    except OSError as error:
        raise DashboardsNotWritten(f"cannot write {error.filename}: {error.strerror}") from error
    return list(texts)
