"""Four numbers about topic changes: the first row of their dashboard."""

from __future__ import annotations

from quotascope.metrics import catalog

from ... import steps
from ...expressions import total
from ...model import Row, Stat
from ...scope import Scope
from ...shortcuts import stat
from .series import delayed, of, seconds_until_allowed


def now(scope: Scope) -> Row:
    """Four numbers."""
    numbers = (_throttled, _empty, _longest_wait, _refused)
    panels = tuple((6, number(scope)) for number in numbers)
    return Row(title="Right now", panels=panels, height=4)


def _throttled(scope: Scope) -> Stat:
    return stat(
        scope,
        "Throttled",
        "Users and client-ids whose topic changes were held back within the last minute.",
        "short",
        scope.or_zero(scope.by("count", delayed(scope))),
        steps=steps.ENTITIES,
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
    return stat(
        scope,
        "Longest wait for the next change",
        "How long whoever is deepest in debt waits until the bucket holds a token again.",
        "s",
        scope.or_zero(scope.by("max", seconds_until_allowed(scope))),
        steps=steps.DELAY,
    )


def _refused(scope: Scope) -> Stat:
    return stat(
        scope,
        "Refused per second",
        "Answers with THROTTLING_QUOTA_EXCEEDED. KRaft counts each twice, on the broker and on the controller.",
        "cps",
        total(scope, catalog.THROTTLING_ERRORS),
        steps=steps.REFUSED,
        nothing="none seen",
    )
