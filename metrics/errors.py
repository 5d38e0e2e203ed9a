"""
The root of all errors, in a module that every room can import without another one.

::

    QuotascopeError
    ├── InvalidInput        input with its problems
    ├── MetricsError        metrics.kafka.errors, metrics.engine.errors
    ├── ClientError         clients.errors
    ├── QuotasError         quotas.errors
    ├── ExporterError       exporter.errors
    ├── PipelineError       pipeline.errors
    ├── SparkListenerError  spark_listener.errors
    ├── AlertsError         alerts.errors
    ├── DashboardsError     dashboards.errors
    └── FileNotWritten      cli.errors
"""

from __future__ import annotations

from collections.abc import Sequence


class QuotascopeError(Exception):
    """Any error that quotascope reports in words of its own; the message says what is wrong, where, and what to do."""

    is_of_usage: bool = False
    """Whether the words of the command line are at fault, which have an exit code of their own."""


class InvalidInput(QuotascopeError):
    """Input that cannot be used; holds every problem, not only the first. Base of the errors of several rooms."""

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.subject = subject
        """What was read, such as the name of a file."""
        self.problems = tuple(problems)
        """One sentence for each, beginning with its place."""
        super().__init__(subject, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.subject}: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.subject}: {len(self.problems)} problems{lines}"
