"""
Builders of PromQL.

Each takes and returns text, as the doctests show. They know the catalog, so that a rate of a gauge or a matcher on a
label that a family does not have is an error here and not an empty panel. Each part of a long expression stands on
lines of its own, for readers who open it in Grafana.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from quotascope.alerts.durations import duration_seconds, duration_text
from quotascope.metrics.catalog import Family, FamilyType

from .errors import InvalidExpression

_SHORT: Final = 100
_OPERATORS: Final = ("!=", "=~", "!~", "=")


def select(family: Family, *matchers: str, window: str = "", offset: str = "", extra: str = "") -> str:
    """
    Return the series of a family.

    Args:
        family: From the catalog.
        matchers: As in PromQL: ``quota_type="fetch"``.
        window: A range such as ``5m``, for `span`.
        offset: A duration into the past.
        extra: A label that the family does not declare and matchers may have, such as the cluster's.

    Raises:
        InvalidExpression: A matcher is on a label that the family does not have.

    >>> from quotascope.metrics.catalog import UTILIZATION
    >>> select(UTILIZATION, 'quota_type="fetch"', window="5m", offset="1h")
    'kafka_quota_utilization_ratio{quota_type="fetch"}[4m59s] offset 1h'

    """
    for matcher in matchers:
        label = _label_of(matcher)
        if label not in (*family.labels, extra):
            raise InvalidExpression(f"{family.name} has no label {label}")
    return series(family.name, *matchers, window=window, offset=offset)


def series(name: str, *matchers: str, window: str = "", offset: str = "") -> str:
    """
    Return the series of a name, such as one of ``recorded``.

    >>> series("cluster:kafka_quota_throttled_entities:count", window="1d", offset="30m")
    'cluster:kafka_quota_throttled_entities:count[23h59m59s] offset 30m'
    """
    text = name
    if matchers:
        text += f"{{{','.join(matchers)}}}"
    if window:
        text += span(window)
    return f"{text} offset {offset}" if offset else text


def span(window: str) -> str:
    """
    Return a range in brackets, a second shorter than ``window``; after a colon it has the step of a subquery.

    Prometheus 2 counts a sample at the older end of a range, Prometheus 3 does not. Recorded series, ``ALERTS`` and
    subqueries often have samples there, as they and their readers are evaluated in equal steps. A second less ends
    between two samples, and in both versions a range of minutes has as many samples as minutes. Ranges that Grafana
    fills in stay as they are.

    >>> span("5m"), span("1d:15m"), span("$__rate_interval")
    ('[4m59s]', '[23h59m59s:15m]', '[$__rate_interval]')
    """
    if "$" in window:
        return f"[{window}]"
    length, colon, step = window.partition(":")
    return f"[{duration_text(duration_seconds(length) - 1)}{colon}{step}]"


def rate(family: Family, window: str, *matchers: str, extra: str = "") -> str:
    """
    Return the growth of a counter per second.

    Raises:
        InvalidExpression: The family is a gauge, whose rate has no meaning.

    >>> from quotascope.metrics.catalog import REQUEST_THROTTLED_SECONDS
    >>> rate(REQUEST_THROTTLED_SECONDS, "5m")
    'rate(kafka_quota_request_throttled_seconds_total[4m59s])'

    """
    return _of_counter("rate", family, window, matchers, extra)


def increase(family: Family, window: str, *matchers: str, extra: str = "") -> str:
    """
    Return the growth of a counter.

    Raises:
        InvalidExpression: The family is a gauge.

    >>> from quotascope.metrics.catalog import LIMIT_CHANGES
    >>> increase(LIMIT_CHANGES, "10m")
    'increase(quotascope_limit_changes_total[9m59s])'

    """
    return _of_counter("increase", family, window, matchers, extra)


def _of_counter(function: str, family: Family, window: str, matchers: Iterable[str], extra: str) -> str:
    if family.type is not FamilyType.COUNTER:
        raise InvalidExpression(f"{function}() of {family.name}, which is a gauge")
    return call(function, select(family, *matchers, window=window, extra=extra))


def average(family: Family, labels: Sequence[str], window: str, *matchers: str, offset: str = "") -> str:
    """
    Return the average of each series of a gauge, then of the exporters that read it.

    Two exporters read a gauge at different times: the average of their maximum would be above the gauge's average. In
    the same way, the average of the maximum of many brokers would be above that of any broker.

    >>> from quotascope.metrics.catalog import DELAY_QUEUE_SIZE
    >>> average(DELAY_QUEUE_SIZE, ("cluster", "broker"), "10m")
    'avg by (cluster, broker) (avg_over_time(kafka_quota_delay_queue_size[9m59s]))'

    """
    averages = select(family, *matchers, window=window, offset=offset)
    return aggregate("avg", labels, call("avg_over_time", averages))


def call(function: str, expression: str, *arguments: str) -> str:
    """
    Return a call of a function with an expression and further arguments.

    >>> call("predict_linear", "up[6h]", "3600")
    'predict_linear(up[6h], 3600)'
    """
    line = f"{function}({', '.join([expression, *arguments])})"
    if "\n" not in expression:
        return line
    inner = ",\n".join([expression, *arguments])
    return f"{function}(\n{_indented(inner)}\n)"


def aggregate(operator: str, labels: Sequence[str], expression: str) -> str:
    """
    Return one series for each combination of some labels.

    >>> aggregate("max", ("cluster", "broker"), "up > 0")
    'max by (cluster, broker) (up > 0)'
    """
    head = f"{operator} by ({', '.join(labels)}) ("
    if _fits(head + expression):
        return f"{head}{expression})"
    return f"{head}\n{_indented(expression)}\n)"


def highest(labels: Sequence[str], **expressions: str) -> str:
    """
    Return the highest of several expressions for equal labels; any of them may be missing.

    >>> print(highest(("cluster",), day="a", week="b"))
    max by (cluster) (
      label_replace(a, "of", "day", "", "")
      or
      label_replace(b, "of", "week", "", "")
    )
    """
    labeled = [
        call("label_replace", expression, '"of"', f'"{name}"', '""', '""') for name, expression in expressions.items()
    ]
    return aggregate("max", labels, "\nor\n".join(labeled))


def above(expression: str, value: float | str) -> str:
    """
    Return the series above a value.

    >>> above("up", 0.5)
    'up > 0.5'
    """
    return compare(expression, ">", value)


def compare(expression: str, operator: str, value: float | str) -> str:
    """
    Return the series for which a comparison holds.

    >>> compare("up", "==", 0)
    'up == 0'
    """
    return operation(expression, operator, _number(value))


def operation(left: str, operator: str, right: str, on: Sequence[str] = ()) -> str:
    """
    Return an operation on two vectors, or on a vector and a number.

    >>> operation("a", "/", "b", on=("cluster",))
    'a / on (cluster) b'
    """
    matching = f" on ({', '.join(on)})" if on else ""
    line = f"{left} {operator}{matching} {right}"
    return line if _fits(line) else f"{left}\n{operator}{matching}\n{right}"


def both(left: str, right: str, on: Sequence[str]) -> str:
    """
    Return the series on the left that have a match on the right.

    >>> both("a > 1", "b > 2", ("cluster",))
    '(a > 1) and on (cluster) (b > 2)'
    """
    return operation(grouped(left), "and", grouped(right), on)


def but_not(left: str, right: str, on: Sequence[str]) -> str:
    """
    Return the series on the left that have no match on the right.

    Unlike ``both`` with the opposite condition, it keeps series whose right side is unknown.

    >>> but_not("a > 1", "b < 2", ("cluster",))
    '(a > 1) unless on (cluster) (b < 2)'
    """
    return operation(grouped(left), "unless", grouped(right), on)


def either(left: str, right: str) -> str:
    """
    Return the series on the left, and series on the right with other labels.

    >>> either("a > 1", "b > 2")
    '(a > 1) or (b > 2)'
    """
    return operation(grouped(left), "or", grouped(right))


def grouped(expression: str) -> str:
    """
    Return an expression in parentheses.

    >>> grouped("a + b")
    '(a + b)'
    """
    if _fits(expression):
        return f"({expression})"
    return f"(\n{_indented(expression)}\n)"


def _label_of(matcher: str) -> str:
    for operator in _OPERATORS:
        label, separator, _ = matcher.partition(operator)
        if separator and '"' not in label:
            return label.strip()
    raise InvalidExpression(f"{matcher} is not a matcher")


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _fits(text: str) -> bool:
    return "\n" not in text and len(text) <= _SHORT


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")
