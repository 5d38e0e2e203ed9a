"""
OpenTelemetry's own environment variables, for what the configuration leaves open.

Their meaning is that of the specification: times in milliseconds, those with ``METRICS`` in their
names before those without. A value that makes no sense raises ``ValueError``, which names the variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

_PREFIXES = ("OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_")
_INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"


class Environment:
    """Reads them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def name(self, option: str) -> str | None:
        """The variable that holds an option such as ``ENDPOINT``; an empty one counts as unset."""
        names = (prefix + option for prefix in _PREFIXES)
        return next((name for name in names if self._environ.get(name)), None)

    def text(self, option: str) -> str | None:
        """The value of an option."""
        name = self.name(option)
        return None if name is None else self._environ[name]

    def choice(self, option: str, choices: frozenset[str], default: str) -> str:
        """The value of an option that has but a few."""
        text = self.text(option) or default
        if text not in choices:
            known = " or ".join(sorted(choices))
            raise ValueError(f"{self.name(option)}: expected {known}, got {text!r}")
        return text

    def flag(self, option: str) -> bool:
        """Whether an option is switched on."""
        return (self.text(option) or "").lower() == "true"

    def timeout_seconds(self, default: float) -> float:
        """The longest time for one request."""
        name = self.name("TIMEOUT")
        return default if name is None else self._seconds(name)

    def interval_seconds(self, default: float) -> float:
        """The time from one push to the next."""
        return self._seconds(_INTERVAL) if self._environ.get(_INTERVAL) else default

    def headers(self) -> dict[str, str]:
        """``name=value,name=value`` with values as in URLs."""
        pairs = [
            pair.partition("=")
            for pair in (self.text("HEADERS") or "").split(",")
            if pair.strip()
        ]
        if not all(equals and name.strip() for name, equals, _ in pairs):
            raise ValueError(f"{self.name('HEADERS')}: expected name=value,name=value")
        return {name.strip(): unquote(value.strip()) for name, _, value in pairs}

    def _seconds(self, name: str) -> float:
        text = self._environ[name]
        if not text.isdecimal() or int(text) == 0:
            raise ValueError(f"{name}: expected whole milliseconds, got {text!r}")
        return int(text) / 1000
