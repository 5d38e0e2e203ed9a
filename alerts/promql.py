"""
Builders of PromQL.

Each takes and gives text; the doctests show what it renders. They know the
catalog, so that a rate of a gauge or a matcher on a label that a family does
not have is an error here and not an alert that never fires. Whatever spans more
than one series is written on lines of its own: people read the rules at night.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from quotascope.metrics.catalog import Family, FamilyType

from .errors import InvalidExpression

_SHORT: Final = 100
_OPERATORS: Final = ("!=", "=~", "!~", "=")


def select(family: Family, *matchers: str, window: str = "", offset: str = "", extra: str = "") -> str:
    """
    The series of a family.

    Args:
        family: From the catalog.
        matchers: As in PromQL: ``quota_type="fetch"``.
        window: A range such as ``5m``.
        offset: How far back.
        extra: A label that the family does not declare, such as the cluster's, may be matched.

    Raises:
        InvalidExpression: A matcher is on a label that the family does not have.

    >>> from quotascope.metrics.catalog import UTILIZATION
    >>> select(UTILIZATION, 'quota_type="fetch"', window="5m", offset="1h")
    'kafka_quota_utilization_ratio{quota_type="fetch"}[5m] offset 1h'

    """
    for matcher in matchers:
        label = _label_of(matcher)
        if label not in (*family.labels, extra):
            raise InvalidExpression(f"{family.name} has no label {label}")
    return series(family.name, *matchers, window=window, offset=offset)


def series(name: str, *matchers: str, window: str = "", offset: str = "") -> str:
    """
    The series of a name, such as one of ``recorded``.

    >>> series("cluster:kafka_quota_throttled_entities:count", window="1d", offset="30m")
    'cluster:kafka_quota_throttled_entities:count[1d] offset 30m'
    """
    text = name
    if matchers:
        text += f"{{{','.join(matchers)}}}"
    if window:
        text += f"[{window}]"
    return f"{text} offset {offset}" if offset else text


def rate(family: Family, window: str, *matchers: str, extra: str = "") -> str:
    """
    How fast a counter grows, per second.

    Raises:
        InvalidExpression: The family is a gauge, of which a rate means nothing.

    >>> from quotascope.metrics.catalog import REQUEST_THROTTLED_SECONDS
    >>> rate(REQUEST_THROTTLED_SECONDS, "5m")
    'rate(kafka_quota_request_throttled_seconds_total[5m])'

    """
    return _of_counter("rate", family, window, matchers, extra)


def increase(family: Family, window: str, *matchers: str, extra: str = "") -> str:
    """
    How much a counter grew.

    Raises:
        InvalidExpression: The family is a gauge.

    >>> from quotascope.metrics.catalog import LIMIT_CHANGES
    >>> increase(LIMIT_CHANGES, "10m")
    'increase(quotascope_limit_changes_total[10m])'

    """
    return _of_counter("increase", family, window, matchers, extra)


def _of_counter(function: str, family: Family, window: str, matchers: Iterable[str], extra: str) -> str:
    if family.type is not FamilyType.COUNTER:
        raise InvalidExpression(f"{function}() of {family.name}, which is a gauge")
    return call(function, select(family, *matchers, window=window, extra=extra))


def average(family: Family, labels: Sequence[str], window: str, *matchers: str, offset: str = "") -> str:
    """
    The average of each series of a gauge, then of the exporters that read it.

    Of a pair of exporters each sees another phase of what it reads. The highest of the two at every moment, averaged, would be the worse phase
    of both; so would the highest of many brokers be a value that no broker has on average.

    >>> from quotascope.metrics.catalog import DELAY_QUEUE_SIZE
    >>> average(DELAY_QUEUE_SIZE, ("cluster", "broker"), "10m")
    'avg by (cluster, broker) (avg_over_time(kafka_quota_delay_queue_size[10m]))'

    """
    each = select(family, *matchers, window=window, offset=offset)
    return aggregate("avg", labels, call("avg_over_time", each))


def call(function: str, expression: str, *arguments: str) -> str:
    """
    A function of one expression; further arguments follow it.

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
    One series for each combination of some labels.

    >>> aggregate("max", ("cluster", "broker"), "up > 0")
    'max by (cluster, broker) (up > 0)'
    """
    head = f"{operator} by ({', '.join(labels)}) ("
    if _fits(head + expression):
        return f"{head}{expression})"
    return f"{head}\n{_indented(expression)}\n)"


def highest(labels: Sequence[str], **expressions: str) -> str:
    """
    The highest of some with equal labels; any of them may be missing.

    >>> print(highest(("cluster",), day="a", week="b"))
    max by (cluster) (
      label_replace(a, "of", "day", "", "")
      or
      label_replace(b, "of", "week", "", "")
    )
    """
    labeled = [
        call("label_replace", expression, '"of"', f'"{which}"', '""', '""') for which, expression in expressions.items()
    ]
    return aggregate("max", labels, "\nor\n".join(labeled))


def above(expression: str, value: float | str) -> str:
    """
    Those series that exceed a value.

    >>> above("up", 0.5)
    'up > 0.5'
    """
    return compare(expression, ">", value)


def compare(expression: str, operator: str, value: float | str) -> str:
    """
    Those series for which a comparison holds.

    >>> compare("up", "==", 0)
    'up == 0'
    """
    return operation(expression, operator, _number(value))


def operation(left: str, operator: str, right: str, on: Sequence[str] = ()) -> str:
    """
    Two vectors, or a vector and a number, put together.

    >>> operation("a", "/", "b", on=("cluster",))
    'a / on (cluster) b'
    """
    matching = f" on ({', '.join(on)})" if on else ""
    line = f"{left} {operator}{matching} {right}"
    return line if _fits(line) else f"{left}\n{operator}{matching}\n{right}"


def both(left: str, right: str, on: Sequence[str]) -> str:
    """
    The series on the left for which there is one on the right.

    >>> both("a > 1", "b > 2", ("cluster",))
    '(a > 1) and on (cluster) (b > 2)'
    """
    return operation(grouped(left), "and", grouped(right), on)


def but_not(left: str, right: str, on: Sequence[str]) -> str:
    """
    The series on the left for which there is none on the right.

    Unlike ``both`` with the opposite, it stays when the right side is not known at all.

    >>> but_not("a > 1", "b < 2", ("cluster",))
    '(a > 1) unless on (cluster) (b < 2)'
    """
    return operation(grouped(left), "unless", grouped(right), on)


def either(left: str, right: str) -> str:
    """
    The series on the left, and those on the right that have other labels.

    >>> either("a > 1", "b > 2")
    '(a > 1) or (b > 2)'
    """
    return operation(grouped(left), "or", grouped(right))


def grouped(expression: str) -> str:
    """
    An expression in parentheses.

    >>> grouped("a + b")
    '(a + b)'
    """
    if _fits(expression):
        return f"({expression})"
    return f"(\n{_indented(expression)}\n)"


def quoted(text: str) -> str:
    r"""
    A string of PromQL.

    >>> quoted('a"b')
    '"a\\"b"'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def literal(text: str) -> str:
    """
    A text as the replacement of `label_replace`, where a $ begins a group.

    >>> literal("a$1")
    'a$$1'
    """
    return text.replace("$", "$$")


def _label_of(matcher: str) -> str:
    for operator in _OPERATORS:
        label, found, _ = matcher.partition(operator)
        if found and '"' not in label:
            return label.strip()
    raise InvalidExpression(f"{matcher} is not a matcher")


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _fits(text: str) -> bool:
    return "\n" not in text and len(text) <= _SHORT


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")
