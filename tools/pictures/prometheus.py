"""Asks a Prometheus what a panel asks, with the variables filled in as Grafana does."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_VARIABLE = re.compile(r"\$\{(\w+):(\w+)\}|\$([A-Za-z_]\w*)")
_SCRAPES = 4
_POINTS = 120
Series = dict[str, Any]


@dataclass
class Prometheus:
    """A Prometheus, the time of the pictures, and the choices at the top of the dashboard."""

    url: str
    end: float
    minutes: int
    variables: Mapping[str, str]
    scrape_seconds: int = 15
    refused: list[str] = field(default_factory=list)
    """Queries that the server could not answer."""

    @property
    def start(self) -> float:
        """The beginning of the range, in seconds since 1970."""
        return self.end - 60 * self.minutes

    def now(self, expression: str) -> list[Series]:
        """Return the answer to an instant query."""
        return self._ask("query", expression, {"time": self.end})

    def over_time(self, expression: str) -> list[Series]:
        """Return the answer to a range query."""
        step = max(60 * self.minutes / _POINTS, 1)
        span = {"start": self.start, "end": self.end, "step": step}
        return self._ask("query_range", expression, span)

    def _ask(self, endpoint: str, expression: str, times: Mapping[str, float]) -> list[Series]:
        query = {"query": self._filled(expression), **times}
        url = f"{self.url.rstrip('/')}/api/v1/{endpoint}?{urllib.parse.urlencode(query)}"
        if not url.startswith(("http://", "https://")):
            raise SystemExit(f"{self.url} is no address of a Prometheus")
        try:
            with urllib.request.urlopen(url) as response:  # noqa: S310  # checked above
                result: list[Series] = json.load(response)["data"]["result"]
        except urllib.error.HTTPError as error:
            self.refused.append(f"{query['query']}: {error.read().decode()}")
            return []
        return result

    def _filled(self, expression: str) -> str:
        return _VARIABLE.sub(self._value, expression)

    def _value(self, match: re.Match[str]) -> str:
        """Return the value of a variable of Grafana; a filter without one matches everything."""
        name = match[1] or match[3]
        if name == "__rate_interval":
            return f"{_SCRAPES * self.scrape_seconds}s"
        if name == "__range":
            return f"{60 * self.minutes}s"
        if name not in self.variables:
            return "" if name in {"user", "client_id", "find"} else ".*"
        value = self.variables[name]
        return re.escape(value) if match[2] == "regex" else value
