"""Vectors about the names of pushed metrics."""

from tests.conformance import expectations
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import MetricName, telemetry_name


class TelemetryNameRunner(Runner):
    """Makes names."""

    def op_telemetry_name(self, step: Fields) -> None:
        """Make the name of a metric."""
        name = MetricName(step.text("name"), step.text("group"))
        expectations.text(step, telemetry_name(name, step.text("prefix")))
