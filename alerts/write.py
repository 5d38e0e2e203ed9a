"""Everything that `quotascope alerts write` writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .alertmanager_file import alertmanager_file
from .errors import CannotWrite
from .links import Site
from .prometheus_files import alerts_file, operator_file, recording_file
from .runbook import runbooks


def rule_files(site: Site) -> dict[str, str]:
    """The files with rules by name: these are committed for the default site."""
    return {
        "quotascope-recording.yaml": recording_file(site),
        "quotascope-alerts.yaml": alerts_file(site),
        "quotascope-prometheusrule.yaml": operator_file(site),
        "alertmanager-example.yaml": alertmanager_file(site),
    }


def write(folder: Path, site: Site) -> Iterator[Path]:
    """
    Write the rules and the runbooks, and tell each file that was written.

    Raises:
        CannotWrite: The folder cannot be made or written to.

    """
    texts = rule_files(site) | {
        f"runbooks/{alert}.md": text for alert, text in runbooks()
    }
    for name, text in texts.items():
        yield _written(folder / name, text)


def _written(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise CannotWrite(
            f"{path} cannot be written: {path.parent} is not a folder"
        ) from error
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror}") from error
    return path
