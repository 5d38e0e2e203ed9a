"""The token that a Grafana asks for: from a file or the environment, never from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .errors import GrafanaError

VARIABLE = "GRAFANA_TOKEN"


def token(file: Path | None, environment: Mapping[str, str]) -> str:
    """
    The token, without blanks around it.

    Raises:
        GrafanaError: There is none, or it holds what no token has.

    """
    found = _read(file) if file else environment.get(VARIABLE, "").strip()
    if not found:
        where = str(file) if file else f"the environment ({VARIABLE})"
        raise GrafanaError(
            f"there is no token in {where}; Grafana gives one to a service account with the role Editor"
        )
    if not found.isascii() or not found.isprintable() or " " in found:
        raise GrafanaError("the token holds characters that no token has")
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise GrafanaError(f"cannot read the token from {file}: {why}") from error
