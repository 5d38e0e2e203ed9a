"""Metrics grouped into MBeans, as a broker shows them, kept in memory; and which of them it shows."""

import logging
import re
import threading
from collections.abc import Mapping, Sequence

from ...kafka.errors import InvalidConfig
from ...kafka.jmx import mbean_name, parse_object_name
from ..metric import KafkaMetric
from ..reporter import NAMESPACE, MetricsReporter

_TOKEN = re.compile(r"\\.|\[\^?\]?|\]|\.|&&", re.DOTALL)
_DOT_ALL = re.compile(r"\(\?[a-z]*s")
_JAVA_DOT = r"[^\n\r\u0085\u2028\u2029]"


class JmxFilter:
    r"""
    Lets a name pass that matches the one expression as a whole and not the other (Kafka: `JmxReporter`).

    As in Java a dot matches no kind of line end, so that the default `.*` hides the MBean of a client with an id that
    holds a carriage return. Letters and digits are ASCII's. Java's `\p{…}`, `\Q…\E`, named groups and set
    operations are not understood.

    Args:
        include: config `metrics.kafka.jmx.include`.
        exclude: config `metrics.kafka.jmx.exclude`; empty for none.

    Raises:
        InvalidConfig: not a regular expression.

    """

    def __init__(self, include: str = ".*", exclude: str = "") -> None:
        self._include = _compiled("metrics.jmx.include", include)
        self._exclude = _compiled("metrics.jmx.exclude", exclude)

    def allows(self, name: str) -> bool:
        """Return whether an MBean of this name is shown."""
        is_included = self._include.fullmatch(name)
        return is_included is not None and self._exclude.fullmatch(name) is None


def _compiled(key: str, expression: str) -> re.Pattern[str]:
    try:
        return re.compile(_as_java(expression), re.ASCII)
    except re.error as error:
        raise InvalidConfig(f"{key} is not a valid regular expression: {error}") from None


def _as_java(expression: str) -> str:
    """Replace the dots that stand for any character by what Java's dot matches without the flag s."""
    inside = False
    dot = "." if _DOT_ALL.search(expression) else _JAVA_DOT

    def translated(match: re.Match[str]) -> str:
        nonlocal inside
        token = match[0]
        if inside and token.startswith(("&&", "[")):
            raise InvalidConfig(f"operations on sets of characters are not understood: {expression!r}")
        if token.startswith("["):
            inside = True
        elif token.startswith("]"):
            inside = False
        return dot if token.startswith(".") and not inside else token

    return _TOKEN.sub(translated, expression)


_log = logging.getLogger(__name__)


class MBean:
    """All metrics of the same group and tags, each an attribute under its own name."""

    def __init__(self, name: str) -> None:
        parse_object_name(name)
        self.name = name
        self.metrics: dict[str, KafkaMetric] = {}

    def attribute(self, name: str, now_ms: int) -> object:
        """Return one attribute at `now_ms` (epoch ms); raises KeyError if there is none of this name."""
        return self.metrics[name].read(now_ms)

    def attributes(self, now_ms: int) -> dict[str, object]:
        """Return all attributes at `now_ms` (epoch ms); one that cannot be read is logged and left out."""
        values: dict[str, object] = {}
        for name, metric in self.metrics.copy().items():
            try:
                values[name] = metric.read(now_ms)
            except Exception:  # noqa: BLE001 - a gauge is foreign code
                _log.warning("a JMX attribute cannot be read: %r", name, exc_info=True)
        return values


class JmxReporter(MetricsReporter):
    """
    Keeps the MBeans that Kafka's reporter of this name would register (Kafka: `JmxReporter`).

    Their prefix is the registry's namespace. A name that JMX would not take is refused (`MalformedName`), which the
    registry logs.

    Args:
        shown: which MBeans can be seen; can be replaced at any time.

    """

    def __init__(self, jmx_filter: JmxFilter | None = None) -> None:
        self._lock = threading.Lock()
        self._filter = JmxFilter() if jmx_filter is None else jmx_filter
        self._prefix = ""
        self._known: dict[str, MBean] = {}

    def reconfigure(self, jmx_filter: JmxFilter) -> None:
        """Show and hide MBeans by another filter from now on."""
        self._filter = jmx_filter

    def contains(self, name: str) -> bool:
        """Return whether there is an MBean of this name, seen or not."""
        return name in self._known

    def mbeans(self) -> Mapping[str, MBean]:
        """Return the MBeans that can be seen, by name, as they are now."""
        jmx_filter = self._filter
        return {name: mbean for name, mbean in self._known.copy().items() if jmx_filter.allows(name)}

    def context_change(self, context: Mapping[str, str]) -> None:
        """
        Take the prefix from the context unless it is empty there.

        Raises:
            InvalidConfig: there are MBeans already: their names cannot change.

        """
        with self._lock:
            if self._known:
                raise InvalidConfig("the JMX prefix can only change before there are MBeans")
            self._prefix = context[NAMESPACE] or self._prefix

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        """Start with the metrics that exist."""
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: KafkaMetric) -> None:
        """Add an attribute, and its MBean if it is the first."""
        name = self._name_of(metric)
        with self._lock:
            mbean = self._known.get(name) or MBean(name)
            mbean.metrics[metric.name.name] = metric
            self._known[name] = mbean

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Drop an attribute, and its MBean if it was the last."""
        name = self._name_of(metric)
        with self._lock:
            mbean = self._known.get(name)
            if mbean is None:
                return
            mbean.metrics.pop(metric.name.name, None)
            if not mbean.metrics:
                del self._known[name]

    def close(self) -> None:
        """Forget all MBeans."""
        with self._lock:
            self._known.clear()

    def _name_of(self, metric: KafkaMetric) -> str:
        return mbean_name(self._prefix, metric.name.group, metric.name.tags)
