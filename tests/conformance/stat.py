"""Vectors about one statistic."""

from tests.conformance import expectations, settings
from tests.conformance.failures import Malformed
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import CompoundStat, KafkaRelease, Measurable, Rate


class StatRunner(Runner):
    """Records into a statistic and reads it, each time with the config of the moment."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._stat = settings.statistic(config)
        self._config = settings.config(config)

    def op_record(self, step: Fields) -> None:
        """Record a value."""
        self._stat.record(self._config, float(step.number("value")), self.now_ms(step))

    def op_measure(self, step: Fields) -> None:
        """Read."""
        value = self._measurable(step).measure(self._config, self.now_ms(step))
        expectations.number(step, value)

    def op_window_size(self, step: Fields) -> None:
        """Ask a rate for its divisor in ms."""
        measurable = self._measurable(step)
        if not isinstance(measurable, Rate):
            raise Malformed(f"a {type(measurable).__name__} has no window size")
        size_ms = measurable.window_size(self._config, self.now_ms(step))
        expectations.number(step, size_ms)

    def op_set_metric_config(self, step: Fields) -> None:
        """Go on with another config."""
        self._config = settings.config(step)

    def _measurable(self, step: Fields) -> Measurable:
        """The statistic itself, or the part of a compound one that `of` names."""
        if not isinstance(self._stat, CompoundStat):
            return self._stat
        of = settings.part_name(step.raw("of"))
        for part in self._stat.stats():
            if part.name.name == of:
                return part.measurable
        raise Malformed(f"the statistic has no part {of!r:.60}")
