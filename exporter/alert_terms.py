"""The thresholds of the alerts and the teams, which the exporter uses as well."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quotascope.metrics.catalog.teams import Team
from quotascope.metrics.catalog.thresholds import DEFAULTS, SharedThresholds
from quotascope.quotas import InvalidQuotas
from quotascope.quotas.teams import read_teams

from .errors import ConfigError
from .names import asked_as


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTerms:
    """Thresholds and teams, as the alerts have them."""

    thresholds: SharedThresholds = DEFAULTS
    teams: tuple[Team, ...] = ()
    """The first that matches an entity owns it."""


DEFAULT_TERMS: Final = AlertTerms()
"""The terms without a configuration of the alerts and without teams."""


def read_known_teams(path: Path) -> tuple[Team, ...]:
    """Return the teams in a file, long names as series have them. Raises ``ConfigError`` with all mistakes."""
    try:
        return read_teams(path, asked_as)
    except InvalidQuotas as error:
        raise ConfigError(error.subject, error.problems) from None
