"""Everything that `quotascope alerts write` writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quotascope.pages.files import put_all

from .alertmanager_file import NOTE as ALERTMANAGER_NOTE
from .alertmanager_file import alertmanager_file
from .errors import CannotWrite
from .links import Site
from .prometheus_files import NOTE as RULES_NOTE
from .prometheus_files import alerts_file, operator_file, recording_file
from .runbook import runbooks

_MISPLACED: Final = {
    "quotascope-prometheusrule.yaml": RULES_NOTE,
    "alertmanager-example.yaml": ALERTMANAGER_NOTE,
}
"""What earlier versions put beside the rules, and how each of these files begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is written beside the rules where it is asked for; each has a place of its own."""

    alertmanager: Path | None = None
    """An example of routes and inhibition."""
    prometheus_rule: Path | None = None
    """The rules as a resource of the Prometheus operator."""
    runbooks: Path | None = None
    """A folder for the runbooks, in Markdown."""


def rule_files(site: Site) -> dict[str, str]:
    """The files for ``rule_files`` of Prometheus, by name; these are committed for the default site."""
    return {
        "quotascope-recording.yaml": recording_file(site),
        "quotascope-alerts.yaml": alerts_file(site),
    }


def write(folder: Path, site: Site, extras: Extras | None = None) -> list[Path]:
    """
    Write the rules into a folder that holds nothing else, and what else is asked for elsewhere; all files or none.

    Returns:
        The files, the rules first.

    Raises:
        CannotWrite: A file or folder cannot be made, or an extra would lie where Prometheus takes it for rules.

    """
    texts = {folder / name: text for name, text in rule_files(site).items()}
    for path, text in _extra_files(site, extras or Extras()):
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
        raise CannotWrite(
            f"{error.filename} cannot be written: {error.strerror}"
        ) from error
    return list(texts)


def misplaced(folder: Path) -> list[Path]:
    """
    The files that an earlier version put beside the rules: a Prometheus that takes all of the folder for rules refuses them.

    They are left alone, for they may be in use: a PrometheusRule in a repository that is deployed, an Alertmanager's configuration.
    """
    return [
        folder / name
        for name, note in _MISPLACED.items()
        if _begins_with(folder / name, f"# {note}")
    ]


def _extra_files(site: Site, extras: Extras) -> Iterator[tuple[Path, str]]:
    if extras.alertmanager is not None:
        yield extras.alertmanager, alertmanager_file(site)
    if extras.prometheus_rule is not None:
        yield extras.prometheus_rule, operator_file(site)
    if extras.runbooks is not None:
        for alert, text in runbooks():
            yield extras.runbooks / f"{alert}.md", text


def _begins_with(file: Path, line: str) -> bool:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.readline(len(line) + 2).rstrip("\n") == line
    except OSError:
        return False
