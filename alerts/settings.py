"""Settings of alerts that people decide: severity, times, labels, teams of clients, and objectives."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from quotascope.metrics.catalog.teams import Clients, Team

from .errors import InvalidSite

_NOT_RE2: Final = re.compile(
    r"(?<!\\)(?:\\\\)*"  # not after a backslash of its own
    r"(?:\(\?(?!:|P<|-?[ims])|\(\?[ims]*[aLux]|\\[1-9NuUZ]|[*+?}]\+|\{(?:\d*,)?(?:\d{5,}|[2-9]\d{3}|1(?!000)\d{3})\})"
)
"""Look-around, comments, flags, back-references, escapes, possessive and long repeats, which only Python supports."""


class AlertSeverity(StrEnum):
    """Urgency of an alert."""

    CRITICAL = "critical"
    """A page: many clients are affected now."""
    WARNING = "warning"
    """A ticket: to be looked at during the day."""
    INFO = "info"
    """Good to know; a dashboard or a chat room."""


class Profile(StrEnum):
    """A choice of alerts (decision 38)."""

    CORE = "core"
    """About ten alerts, which an on-call team reads."""
    ALL = "all"
    """An alert for each cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """Settings of an alert."""

    enabled: bool | None = None
    """True to write the alert, False to leave it out, None to follow the profile."""
    severity: AlertSeverity
    wait: str
    """Duration in ``for``."""
    keep: str | None = None
    """Duration in ``keep_firing_for``."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Additional labels of the alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A promise to some entities: the share of the time in which a broker does not throttle them."""

    name: str
    """Value of the label ``slo``."""
    clients: Clients
    percent: float
    """Percentage of 30 days."""
    tolerated_seconds: float = 0.0
    """Longest throttle time that does not count as throttled."""

    @property
    def budget(self) -> float:
        """Share of the time in which the entities may be throttled."""
        return round(1 - self.percent / 100, 12)


def matchers(clients: Clients) -> tuple[str, ...]:
    r"""
    Return the conditions of clients as matchers of PromQL.

    >>> matchers(Clients(user='a"b', client_id_pattern="app-.*"))
    ('user="a\\"b"', 'client_id=~"(?s:app-.*)"')
    """
    return tuple(f"{label}{operator}{quoted(text)}" for label, operator, text in _terms(clients))


def condition(clients: Clients) -> str:
    r"""
    Return the conditions of clients as a condition in a template of Prometheus.

    >>> condition(Clients(user='a"b'))
    'eq $labels.user "a\\"b"'
    >>> condition(Clients(user="a", client_id_pattern="app-.*"))
    'and (eq $labels.user "a") (match "^(?s:app-.*)$" $labels.client_id)'
    """
    terms = [
        f"eq $labels.{label} {go_text(text)}" if operator == "=" else f"match {go_text(f'^{text}$')} $labels.{label}"
        for label, operator, text in _terms(clients)
    ]
    if len(terms) == 1:
        return terms[0]
    return f"and {' '.join(f'({term})' for term in terms)}"


def _terms(clients: Clients) -> list[tuple[str, str, str]]:
    # a name may have several lines, which a dot matches in Prometheus 3, but not in Prometheus 2 and in templates
    patterns = [text and f"(?s:{text})" for text in (clients.user_pattern, clients.client_id_pattern)]
    terms = (
        ("user", "=", clients.user),
        ("user", "=~", patterns[0]),
        ("client_id", "=", clients.client_id),
        ("client_id", "=~", patterns[1]),
    )
    return [(label, operator, text) for label, operator, text in terms if text is not None]


def quoted(text: str) -> str:
    r"""
    Return a string of PromQL.

    >>> quoted('a"b')
    '"a\\"b"'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def literal(text: str) -> str:
    """
    Return a text as the replacement of `label_replace`, where a $ begins a group.

    >>> literal("a$1")
    'a$$1'
    """
    return text.replace("$", "$$")


def go_text(text: str) -> str:
    r"""
    Return a text as a string in a template of Prometheus.

    >>> go_text('a"b\n')
    '"a\\"b\\n"'
    """
    # JSON's escapes are a part of Go's
    return json.dumps(text, ensure_ascii=False)


def team_label(teams: Iterable[Team], default: str | None) -> str:
    """
    Return the label ``team`` of an alert on an entity as a template: the first team that matches, or the default.

    Prometheus evaluates a template only for alerts that fire: it adds no cost to expressions, and no series. Without
    a match and a default the label is empty, which is the same as no label.

    >>> team_label([Team(name="payments", clients=(Clients(user="alice"),))], None)
    '{{ if eq $labels.user "alice" }}{{ "payments" }}{{ end }}'
    """
    cases = [
        f"if {condition(clients)} }}}}{{{{ {go_text(team.name)} }}}}" for team in teams for clients in team.clients
    ]
    if default is not None:
        fallback = f"{{{{ {go_text(default)} }}}}"
        if not cases:
            return fallback
        cases.append(f"}}}}{fallback}")
    return f"{{{{ {'{{ else '.join(cases)}{{{{ end }}}}" if cases else ""


def check_pattern(pattern: str) -> str:
    """Return a pattern that Prometheus can use. Raises ``InvalidSite`` for any other."""
    if not pattern or _NOT_RE2.search(pattern):
        raise InvalidSite(
            f"{pattern!r} is not a regular expression of Prometheus: it must not be empty, and have no look-around, "
            "no back-references and nothing else that RE2 lacks"
        )
    try:
        with warnings.catch_warnings(action="ignore"):  # of [[:alpha:]]
            re.compile(pattern)
    except re.error as error:
        raise InvalidSite(f"{pattern!r} is not a regular expression: {error}") from error
    return pattern
