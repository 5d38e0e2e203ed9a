"""What people decide about the alerts: severity, times, labels, who owns a client, and what was promised to it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from .errors import InvalidSite
from .promql import quoted

_NOT_RE2: Final = re.compile(
    r"(?<!\\)(?:\\\\)*"  # not after a backslash of its own
    r"(?:\(\?(?!:|P<|-?[ims])|\(\?[ims]*[aLux]|\\[1-9NuUZ]|[*+?}]\+|\{(?:\d*,)?(?:\d{5,}|[2-9]\d{3}|1(?!000)\d{3})\})"
)
"""Look-around, comments and other flags, back-references, escapes, possessive and long repeats: Python knows them, Prometheus does not."""

_LONGEST: Final = 2**63 // 10**9
"""Seconds; Prometheus counts nanoseconds in 63 bits."""
_UNITS: Final = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile("".join(rf"(?:(\d{{1,12}}){unit})?" for unit in _UNITS) + r"(?:\d{1,12}ms)?", re.ASCII)


def duration_seconds(text: str) -> int:
    """
    The whole seconds of a duration of Prometheus. Raises ``InvalidSite`` when it is none.

    >>> duration_seconds("1h30m")
    5400
    """
    found = _DURATION.fullmatch(text) if text else None
    if found is None:
        raise InvalidSite(f"{text!r} is not a duration of Prometheus such as 90s, 5m or 1h30m")
    parts = zip(found.groups(default="0"), _UNITS.values(), strict=True)
    seconds = sum(int(number) * unit for number, unit in parts)
    if seconds >= _LONGEST:
        raise InvalidSite(f"{text!r} is not a duration of Prometheus: it is longer than 292 years")
    return seconds


def duration_text(seconds: int) -> str:
    """
    The same as text, in one unit.

    >>> duration_text(840), duration_text(90)
    ('14m', '90s')
    """
    unit = next(u for u, length in _UNITS.items() if u in "hms" and not seconds % length)
    return f"{seconds // _UNITS[unit]}{unit}"


class AlertSeverity(StrEnum):
    """How an alert is handled."""

    CRITICAL = "critical"
    """A page: many clients suffer now."""
    WARNING = "warning"
    """A ticket: to be looked at during the day."""
    INFO = "info"
    """Good to know; a dashboard or a chat room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """One alert as it is written."""

    enabled: bool = True
    severity: AlertSeverity
    wait: str
    """``for``."""
    keep: str | None = None
    """``keep_firing_for``."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """More labels of this alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """
    Entities by name or pattern; all that is given must hold, and a pattern matches a name as a whole.

    An entity without a user has the name ``""`` there, as in the series.
    """

    user: str | None = None
    user_pattern: str | None = None
    client_id: str | None = None
    client_id_pattern: str | None = None

    def matchers(self) -> tuple[str, ...]:
        r"""
        As in a selector of PromQL.

        >>> Clients(user='a"b', client_id_pattern="app-.*").matchers()
        ('user="a\\"b"', 'client_id=~"(?s:app-.*)"')
        """
        return tuple(f"{label}{operator}{quoted(text)}" for label, operator, text in self._given())

    def condition(self) -> str:
        r"""
        As in a template of Prometheus.

        >>> Clients(user='a"b').condition()
        'eq $labels.user "a\\"b"'
        >>> Clients(user="a", client_id_pattern="app-.*").condition()
        'and (eq $labels.user "a") (match "^(?s:app-.*)$" $labels.client_id)'
        """
        found = [
            f"eq $labels.{label} {go_text(text)}"
            if operator == "="
            else f"match {go_text(f'^{text}$')} $labels.{label}"
            for label, operator, text in self._given()
        ]
        if len(found) == 1:
            return found[0]
        return f"and {' '.join(f'({each})' for each in found)}"

    def _given(self) -> list[tuple[str, str, str]]:
        # a name may have several lines, which a dot matches in Prometheus 3, but not in Prometheus 2 and in templates
        patterns = [text and f"(?s:{text})" for text in (self.user_pattern, self.client_id_pattern)]
        every = (
            ("user", "=", self.user),
            ("user", "=~", patterns[0]),
            ("client_id", "=", self.client_id),
            ("client_id", "=~", patterns[1]),
        )
        return [(label, operator, text) for label, operator, text in every if text is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A team, and the entities that are its own."""

    team: str
    clients: Clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A promise to some entities: the share of the time in which a broker does not throttle them."""

    name: str
    """The label ``slo``."""
    clients: Clients
    percent: float
    """Of 30 days."""
    tolerated_seconds: float = 0.0
    """A longer throttle time counts as throttled."""

    @property
    def budget(self) -> float:
        """The share of the time in which the entities may be throttled."""
        return round(1 - self.percent / 100, 12)


def go_text(text: str) -> str:
    r"""
    A string in a template of Prometheus, whatever characters it holds.

    >>> go_text('a"b\n')
    '"a\\"b\\n"'
    """
    # JSON's escapes are a part of Go's
    return json.dumps(text, ensure_ascii=False)


def owner_label(owners: Iterable[Owner], default: str | None) -> str:
    """
    The label ``owner`` of an alert on an entity, as a template of Prometheus: the first owner that matches, else the default.

    A template, so that expressions, their series and what they cost stay as they are: Prometheus fills it in for alerts that fire only.
    Without a match and a default it is empty, and an empty label is none.

    >>> owner_label([Owner(team="payments", clients=Clients(user="alice"))], None)
    '{{ if eq $labels.user "alice" }}{{ "payments" }}{{ end }}'
    """
    cases = [f"if {owner.clients.condition()} }}}}{{{{ {go_text(owner.team)} }}}}" for owner in owners]
    if default is not None:
        last = f"{{{{ {go_text(default)} }}}}"
        if not cases:
            return last
        cases.append(f"}}}}{last}")
    return f"{{{{ {'{{ else '.join(cases)}{{{{ end }}}}" if cases else ""


def check_pattern(pattern: str) -> str:
    """The pattern, which Prometheus can use. Raises ``InvalidSite`` when it cannot."""
    if not pattern or _NOT_RE2.search(pattern):
        raise InvalidSite(
            f"{pattern!r} is not a regular expression of Prometheus: it must not be empty, and have no look-around, no back-references and nothing else that RE2 lacks"
        )
    try:
        with warnings.catch_warnings(action="ignore"):  # of [[:alpha:]]
            re.compile(pattern)
    except re.error as error:
        raise InvalidSite(f"{pattern!r} is not a regular expression: {error}") from error
    return pattern
