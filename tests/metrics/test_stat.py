"""What statistics are made of."""

import pytest
from tests.metrics.contracts import TEN_SECONDS

from quotascope.metrics import CompoundStat, Measurable, Measured, Quota, Stat


def test_the_base_classes_do_nothing_by_themselves() -> None:
    """A subclass that forgets a method is refused."""
    with pytest.raises(NotImplementedError):
        Measurable().measure(TEN_SECONDS, 0)
    with pytest.raises(NotImplementedError):
        Stat().record(TEN_SECONDS, 1.0, 0)
    with pytest.raises(NotImplementedError):
        CompoundStat().stats()


def test_a_quota_decides_unless_the_statistic_knows_better() -> None:
    """Most statistics leave the decision to the bound."""
    measured = Measured(lambda _config, _now_ms: 0.0)
    assert measured.acceptable(Quota(5.0), 5.0)
    assert not measured.acceptable(Quota(5.0), 5.1)
