"""The part of the alerts' configuration that the exporter uses as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quotascope.metrics.catalog.owners import Owner
from quotascope.metrics.catalog.thresholds import DEFAULTS, SharedThresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTerms:
    """Thresholds and owners, as the alerts have them."""

    thresholds: SharedThresholds = DEFAULTS
    owners: tuple[Owner, ...] = ()
    """The first that matches an entity owns it."""
    default_owner: str | None = None
    """The owner of all other entities; None for none."""


DEFAULT_TERMS: Final = AlertTerms()
"""The terms without a configuration of the alerts."""
