"""Vectors about how histograms cut a range of values."""

from enum import Enum

from tests.conformance import expectations, settings
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import BinScheme, ConstantBins, KafkaRelease, LinearBins


class _Scheme(Enum):
    """The words of the vectors."""

    CONSTANT = "constant"
    LINEAR = "linear"


class HistogramBinsRunner(Runner):
    """Asks for the bin of a value and for the edge of a bin."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._bins = _bins(config)

    def op_to_bin(self, step: Fields) -> None:
        """Ask for a value's bin."""
        number = self._bins.bin_of(float(step.number("value")))
        expectations.number(step, number)

    def op_from_bin(self, step: Fields) -> None:
        """Ask where a bin begins."""
        expectations.number(step, self._bins.edge(step.integer("bin")))


def _bins(config: Fields) -> BinScheme:
    scheme = settings.member(_Scheme, config.text("scheme").upper())
    bins, max_value = config.integer("bins"), float(config.number("max"))
    if scheme is _Scheme.LINEAR:
        return LinearBins(bins, max_value)
    return ConstantBins(bins, float(config.number("min")), max_value)
