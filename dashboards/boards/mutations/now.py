"""Four numbers about topic changes: the first row of their dashboard."""

from __future__ import annotations

from quotascope.metrics import catalog

from ... import statistics, steps
from ...model import Row, Stat
from ...scope import Scope
from ...shortcuts import stat
from .series import delayed, of, seconds_until_allowed


def now(scope: Scope) -> Row:
    """Four numbers."""
    return statistics.right_now(scope, _throttled, _empty, _longest_wait, _refused)


def _throttled(scope: Scope) -> Stat:
    return statistics.how_many_throttled(
        scope,
        "Users and client-ids whose topic changes were held back within the last minute.",
        delayed(scope),
    )


def _empty(scope: Scope) -> Stat:
    tokens = of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    return stat(
        scope,
        "Buckets empty",
        "Users and client-ids without tokens: the next change is refused.",
        "short",
        scope.or_zero(scope.by("count", f"{tokens} <= 0")),
        steps=steps.ANY,
    )


def _longest_wait(scope: Scope) -> Stat:
    return statistics.longest(
        scope,
        "Longest wait for the next change",
        "How long whoever is deepest in debt waits until the bucket holds a token again.",
        seconds_until_allowed(scope),
    )


def _refused(scope: Scope) -> Stat:
    return statistics.refused(
        scope, "Refused per second", "Answers with THROTTLING_QUOTA_EXCEEDED."
    )
