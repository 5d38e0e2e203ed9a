"""What the builders refuse; the doctests show what they give."""

import pytest

from quotascope.alerts import InvalidExpression
from quotascope.alerts.promql import increase, rate, select
from quotascope.metrics.catalog import LIMIT_CHANGES, UTILIZATION


def test_a_rate_of_a_gauge_is_refused() -> None:
    """It would be a number that means nothing."""
    with pytest.raises(InvalidExpression, match=r"rate\(\) of kafka_quota_utiliz"):
        rate(UTILIZATION, "5m")
    with pytest.raises(InvalidExpression, match="which is a gauge"):
        increase(UTILIZATION, "5m")


def test_a_label_that_a_family_lacks_is_refused() -> None:
    """It would match nothing, and the alert would never fire."""
    with pytest.raises(InvalidExpression, match="has no label broker"):
        select(LIMIT_CHANGES, 'broker="1"')


def test_the_clusters_label_may_be_asked_for() -> None:
    """Families do not declare it: Prometheus adds it."""
    assert select(LIMIT_CHANGES, 'cluster!="a=b"', extra="cluster") == 'quotascope_limit_changes_total{cluster!="a=b"}'


@pytest.mark.parametrize("text", ["broker", '"broker"="1"'])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    """A typing mistake is reported."""
    with pytest.raises(InvalidExpression, match="is not a matcher"):
        select(LIMIT_CHANGES, text)
