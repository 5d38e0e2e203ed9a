"""Six numbers about the exporter: the first row of its dashboard."""

from __future__ import annotations

from quotascope.metrics import catalog

from ... import statistics, steps
from ...model import Row, Stat
from ...scope import Scope
from ...shortcuts import stat


def now(scope: Scope) -> Row:
    """Six numbers."""
    return statistics.right_now(
        scope,
        _exporters,
        _sources_down,
        _age_of_limits,
        _age_of_numbers,
        _entities,
        _rules,
    )


def _exporters(scope: Scope) -> Stat:
    return stat(
        scope,
        "Exporters",
        "Exporters that Prometheus reads. Without one every dashboard is empty.",
        "short",
        scope.by("count", scope.of(catalog.BUILD_INFO)),
        steps=steps.UP,
    )


def _sources_down(scope: Scope) -> Stat:
    return statistics.sources_down(
        scope, "Brokers and controllers whose last read failed."
    )


def _age_of_limits(scope: Scope) -> Stat:
    return stat(
        scope,
        "Age of the limits",
        "How old the configured limits are that were joined with usage.",
        "s",
        scope.by("max", scope.of(catalog.LIMITS_AGE_SECONDS)),
        steps=steps.OLD_LIMITS,
        nothing="never read",
    )


def _age_of_numbers(scope: Scope) -> Stat:
    return stat(
        scope,
        "Age of the numbers",
        "How old the shown numbers are.",
        "s",
        scope.by("max", scope.of(catalog.SNAPSHOT_AGE_SECONDS)),
        steps=steps.OLD_NUMBERS,
    )


def _entities(scope: Scope) -> Stat:
    return stat(
        scope,
        "Users and client-ids shown",
        "How many quota entities the exporter shows; of two exporters, the one that shows more. None: no quota is configured, or no client was seen yet.",
        "short",
        scope.by("max", scope.of(catalog.ENTITIES, 'state="exported"')),
        steps=steps.NEUTRAL,
    )


def _rules(scope: Scope) -> Stat:
    return stat(
        scope,
        "Configured rules",
        "Rules that the brokers have, of all kinds.",
        "short",
        scope.by("sum", scope.by("max", scope.of(catalog.RULES), "quota_key")),
        steps=steps.NEUTRAL,
    )
