"""A quota engine in this process, read like a cluster: its usage, and its configured limits."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping

from quotascope.metrics.engine.clock import Clock
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.jmx import parse_object_name
from quotascope.metrics.kafka.release import ReleaseRange

from .limits import Limits, NodeSettings
from .mapping import SERVER, Bean, BeanColumn, BeanLayout, BeanTable, wanted
from .names import known_rules
from .sources.source import CoverageTracker


class EmbeddedSource:
    """
    One registry of metrics with Kafka's groups, names and tags, beside those that all of its metrics have.

    Reading has no effect on the engine: unlike Kafka's own JMX reads it does not move a
    window.

    Args:
        name: The label ``source``.
        registry: The registry that the engine records to.
        node_id: The label ``broker``.
        clock: The engine's clock, epoch ms.
        beans: Gives the attributes of further MBeans, by object name: what a broker has beside its quota metrics.

    """

    dialect = "embedded"

    def __init__(
        self,
        name: str,
        registry: Registry,
        node_id: str,
        clock: Clock,
        beans: Callable[[], Mapping[str, Mapping[str, float]]] = dict,
    ) -> None:
        self.name, self.node_id = name, node_id
        self._registry = registry
        self._clock = clock
        self._beans = beans
        self._further: dict[tuple[str, str], BeanColumn] = {}
        """Columns of further MBeans, by object name and attribute."""
        self._seen: list[KafkaMetric] = []
        self._columns: dict[MetricName, BeanColumn | None] = {}
        self._shown: list[KafkaMetric] = []
        self._layout = BeanLayout(())
        self._covered = CoverageTracker(complete=True)

    async def read(self) -> BeanTable:
        """Return the quota metrics as they are now."""
        metrics = list(self._registry.metrics().values())
        beans = {
            (name, attribute): value
            for name, attributes in self._beans().items()
            for attribute, value in attributes.items()
        }
        if metrics != self._seen or [*beans] != [*self._further]:
            self._learn(metrics, beans)
        now_ms = self._clock()
        values = array("d", [metric.peek(now_ms) for metric in self._shown])
        values.extend(beans.values())
        coverage = self._covered.of(self._layout)
        return BeanTable(node_id=self.node_id, layout=self._layout, values=values, coverage=coverage)

    async def close(self) -> None:
        """Do nothing: the registry belongs to the engine."""

    def _learn(self, metrics: list[KafkaMetric], beans: Iterable[tuple[str, str]]) -> None:
        """Make the layout for other metrics or beans; columns of those that stay are the same objects."""
        columns_by_name, self._columns = self._columns, {}
        common_tags = self._registry.config.tags
        for name in (metric.name for metric in metrics if metric.stat is not None):
            if name not in columns_by_name:
                tags = {key: value for key, value in name.tags.items() if value and (key, value) not in common_tags}
                bean = Bean.of(SERVER, {**tags, "type": name.group})
                columns_by_name[name] = wanted(BeanColumn(bean, name.name))
            self._columns[name] = columns_by_name[name]
        self._shown = [metric for metric in metrics if self._columns.get(metric.name)]
        columns = (self._columns[metric.name] for metric in self._shown)
        further: dict[tuple[str, str], BeanColumn] = {}
        for object_name, attribute in beans:
            column = self._further.get((object_name, attribute))
            if column is None:
                column = BeanColumn(Bean.of(*parse_object_name(object_name)), attribute)
            further[object_name, attribute] = column
        self._further = further
        self._layout = BeanLayout((*filter(None, columns), *self._further.values()))
        self._seen = metrics


class EmbeddedLimits:
    """
    Reads the rules of an engine that is broker and controller in one.

    Args:
        quotas: The engine's managers.
        node_id: The label ``broker`` of its usage.
        clock: The engine's clock, epoch ms.
        request_capacity_threads: Threads that serve requests, None when that means nothing here.

    """

    def __init__(
        self, quotas: QuotaManagers, node_id: str, clock: Clock, request_capacity_threads: float | None = None
    ) -> None:
        self._quotas = quotas
        self._node_id = node_id
        self._clock = clock
        self._request_capacity_threads = request_capacity_threads

    async def read(self) -> Limits:
        """Return the rules in force now."""
        client = self._quotas.produce.config
        controller = self._quotas.controller_mutation.config
        callback = self._quotas.callback
        settings = NodeSettings(
            request_capacity_threads=self._request_capacity_threads,
            quota_samples=client.samples,
            quota_window_seconds=float(client.window_seconds),
            controller_quota_samples=controller.samples,
            controller_quota_window_seconds=float(controller.window_seconds),
            quota_callback_class=None if callback is None else type(callback).__qualname__,
        )
        return Limits(
            rules=known_rules({manager.quota_type: manager.rules() for manager in self._quotas.all()}),
            nodes={self._node_id: settings},
            active_controller=self._node_id,
            releases={self._node_id: ReleaseRange(oldest=client.release, newest=client.release)},
            read_at=self._clock() / 1000,
        )

    async def close(self) -> None:
        """Do nothing: the engine has its own owner."""
