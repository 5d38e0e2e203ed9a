"""Vectors about recording levels."""

from tests.conformance import expectations, settings
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import KafkaRelease, RecordingLevel, Registry


class RecordingLevelRunner(Runner):
    """Asks sensors of one level under registries of another."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._level = settings.member(RecordingLevel, config.text("sensor_level"))

    def op_should_record(self, step: Fields) -> None:
        """Ask whether the sensor records."""
        configured = settings.member(RecordingLevel, step.text("config_level"))
        registry = Registry(recording_level=configured)
        sensor = registry.sensor("sensor", 0, recording_level=self._level)
        expectations.flag(step, sensor.should_record())
