"""
Errors in Kafka's words that a program passes; `metrics.engine.errors` has the errors of the engine.

```
MetricsError
├── InvalidConfig               a setting that no broker could run with
└── MalformedName               text that is no MBean name, or no sanitized name
```
"""

from ..errors import QuotascopeError


class MetricsError(QuotascopeError):
    """Any error of the engine and of Kafka's vocabulary."""


class InvalidConfig(MetricsError, ValueError):
    """A setting that no broker could run with."""


class MalformedName(MetricsError, ValueError):
    """A text does not follow the grammar of its kind of name; the message shows its start only."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason)
        self.text = text
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}: {self.text[:200]!r}"
