"""Files that `quotascope alerts write` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from quotascope.pages.files import put_all

from .errors import CannotWrite
from .links import Site
from .render import alert_groups, recording_groups
from .runbook import runbooks

_RULES_NOTE: Final = "Written by `quotascope alerts write`; changes here are lost."


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Paths of files beside the rules; None for a file that is not written."""

    alertmanager: Path | None = None
    """Templates of notifications for Alertmanager."""
    prometheus_rule: Path | None = None
    """The rules as a resource of the Prometheus operator."""
    runbooks: Path | None = None
    """A folder for the runbooks, in Markdown."""


def rule_files(site: Site) -> dict[str, str]:
    """Return the files for ``rule_files`` of Prometheus, by name; these are committed for the default site."""
    return {
        "quotascope-recording.yaml": _yaml(_RULES_NOTE, {"groups": recording_groups(site)}),
        "quotascope-alerts.yaml": _yaml(_RULES_NOTE, {"groups": alert_groups(site)}),
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
        elsewhere.append((extras.alertmanager, notification_templates(site)))
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
    """Return the recording rules and the alerts as one ``PrometheusRule``."""
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "quotascope",
            "labels": {"app.kubernetes.io/name": "quotascope"},
        },
        "spec": {"groups": [*recording_groups(site), *alert_groups(site)]},
    }
    return _yaml(_RULES_NOTE, resource)


def notification_templates(site: Site) -> str:
    """Return templates whose messages begin with the event; Alertmanager's own hide it among labels and addresses."""
    text = files(__package__).joinpath("quotascope.tmpl").read_text(encoding="utf-8")
    return text.replace(".CommonLabels.CLUSTER", f".CommonLabels.{site.cluster_label}")


_WIDTH = 100_000  # lines break only where the expression breaks them


class _Dumper(yaml.SafeDumper):
    """A dumper that writes a text of several lines as a block."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _yaml(note: str, document: Mapping[str, Any]) -> str:
    """Return a document as YAML with a comment above it, in the order of its keys."""
    text = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"# {note}\n{text}"
