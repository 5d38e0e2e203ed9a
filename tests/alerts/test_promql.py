"""What the builders give, by the examples in their docstrings, and what they refuse."""

import doctest
from types import ModuleType

import pytest

from quotascope.alerts import InvalidExpression, links, promql, recorded
from quotascope.alerts.promql import increase, rate, select
from quotascope.metrics.catalog import LIMIT_CHANGES, UTILIZATION


@pytest.mark.parametrize("module", [links, promql, recorded], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    """Each builder shows its PromQL, and that is what comes out."""
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


def test_a_rate_of_a_gauge_is_refused() -> None:
    """It would be a number that means nothing."""
    with pytest.raises(InvalidExpression, match=r"rate\(\) of kafka_quota_utiliz"):
        rate(UTILIZATION, "5m")
    with pytest.raises(InvalidExpression, match="which is a gauge"):
        increase(UTILIZATION, "5m")


@pytest.mark.parametrize(
    ("text", "message"),
    [('broker="1"', "has no label broker"), ("broker", "is not a matcher"), ('"broker"="1"', "is not a matcher")],
)
def test_what_would_match_nothing_is_refused(text: str, message: str) -> None:
    """The alert would never fire; the cluster's label may be asked for, though no family declares it."""
    with pytest.raises(InvalidExpression, match=message):
        select(LIMIT_CHANGES, text)
    assert select(LIMIT_CHANGES, 'cluster!="a=b"', extra="cluster") == 'quotascope_limit_changes_total{cluster!="a=b"}'
