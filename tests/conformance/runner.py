"""What every kind of vector has in common: a config, a clock, and steps with an operation each."""

from tests.conformance.failures import Malformed
from tests.conformance.fields import Fields

from quotascope.metrics import KafkaRelease


class Runner:
    """
    Runs the steps of one vector.

    A kind is a subclass: its constructor reads what it needs of the config, and each operation is a method named
    `op_<operation>` that reads all of its step. Times are epoch ms: `clock_origin_ms` of the config plus `at_ms` of the step,
    which is the last one's when it is left out.
    """

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        self._release = release
        self._origin_ms = config.integer("clock_origin_ms", 0)
        self._at_ms = 0

    def now_ms(self, step: Fields) -> int:
        """The time of a step."""
        self._at_ms = step.integer("at_ms", self._at_ms)
        return self._origin_ms + self._at_ms

    def run(self, step: Fields) -> None:
        """Run one step. Raises `Failure`."""
        operation = step.text("op")
        method = getattr(self, f"op_{operation}", None)
        if method is None:
            raise Malformed(f"unknown operation {operation!r:.60}")
        self.now_ms(step)
        method(step)
        step.done()
