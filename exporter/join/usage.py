"""What nodes report of themselves and of their entities, out of the numbers of all tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from operator import is_not
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType

from ..limits import Limits, NodeSettings
from ..mapping import MILLISECONDS, PERCENTILES, USAGE, Meaning
from ..snapshot import Columns, ConnectionUsage, Floats, Layout, LimitedRate, NodeLoad, NodeUsage
from ..snapshot.layout import TYPES, Rows, fixed
from .limiting import IpLimits, StaticLimits
from .placing import OF_ENTITIES, NodeColumns, Placed

_UNLIMITED_TOKENS: Final = 9e15
"""
More tokens than any limit gives. A bucket without a limit grows by Long.MAX a second up to
1e20: within a millisecond of losing its limit it holds this many.
"""
_OF_USAGE: Final = np.array([USAGE[kind].divisor for kind in TYPES])
"""Kafka's unit divided by this is ours."""
_TOLERANCE: Final = 0.02
"""Of the limit, or of what was reported if that is more: the rate moves between the readings of two attributes."""
_REPEATS_OF_FETCH: Final = {"FetchConsumer", "FetchFollower"}
_FORWARDED: Final = {"CreateTopics", "CreatePartitions", "DeleteTopics"}
"""
Requests with throttles that Kafka's histogram lacks under KRaft, where brokers forward them: it stays at 0 although they are
throttled. (With ZooKeeper it counts them.)
"""
_MOST_HISTOGRAMS: Final = 1_000
"""Far more than Kafka has requests; an agent may make names up."""
_THROTTLES: Final = {
    Meaning.IP_CONNECTION_THROTTLE,
    Meaning.LISTENER_CONNECTION_THROTTLE,
    Meaning.REMOTE_STORAGE_THROTTLE,
}
"""Averages in ms, NaN when there was no throttle."""


class UsageReader:
    """The entities that count, and where to read what they used; the ``last`` layout is kept if entities and limits are the same."""

    def __init__(self, placed: Placed, counted: NDArray[np.bool_], last: Layout) -> None:
        layout, rows = placed.layout, np.flatnonzero(counted)
        if len(rows) < len(layout):
            layout = layout.changed(np.flatnonzero(~counted))
        if len(layout) == len(last) and not any(map(is_not, layout.entities, last.entities)):
            layout = last
        here = np.full(len(placed.layout), -1)
        here[rows] = np.arange(len(rows))
        self.placed, self.counted, self.layout = placed, counted, layout
        self.places = {meaning: at[rows] for meaning, at in placed.places.items()}
        self._folded = {
            meaning: (places[here[of] >= 0], here[of[here[of] >= 0]]) for meaning, (places, of) in placed.folded.items()
        }
        self._usage_divisors = _OF_USAGE[layout.types]
        # NaN after a minute without a throttle is 0 where a node measures it: it has the column. Of controller mutations that holds
        # beside a counter of an embedded engine only: under KRaft the column is there, and never more than NaN.
        nowhere = np.full(len(layout), -1)
        measured = self.places.get(Meaning.THROTTLE_TIME, nowhere) >= 0
        measured &= (layout.types != TYPES.index(QuotaType.CONTROLLER_MUTATION)) | (
            self.places.get(Meaning.THROTTLED_SECONDS, nowhere) >= 0
        )
        self._unthrottled = np.where(measured, 0.0, np.nan)

    def read(self, values: Floats) -> Columns:
        """What the entities used, without causes; ``values`` are the numbers of all tables and a NaN."""
        layout = self.layout
        read: dict[str, Any] = dict.fromkeys(OF_ENTITIES.values(), layout.absent)
        for meaning, places in self.places.items():
            column = self._in_base_units(meaning, values[places], slice(None))
            if meaning in self._folded:
                self._fold(meaning, column, values)
            read[OF_ENTITIES[meaning]] = layout.column(column)
        causes = np.zeros(len(layout), np.int8)
        return Columns(layout=layout, causes=fixed(causes), **read)

    def _fold(self, meaning: Meaning, column: Floats, values: Floats) -> None:
        """Add usages up where several entities of a callback are shown as one, and take the longest throttle."""
        places, rows = self._folded[meaning]
        each = self._in_base_units(meaning, values[places], rows)
        column[rows] = np.nan
        if meaning is Meaning.USAGE:
            # by size, so that the sum does not depend on the order
            sizes = np.lexsort((each, rows))
            column[rows[~np.isnan(each)]] = 0.0
            np.add.at(column, rows[sizes], np.nan_to_num(each[sizes]))
        else:
            np.fmax.at(column, rows, each)

    def _in_base_units(self, meaning: Meaning, numbers: Floats, rows: Rows | slice) -> Floats:
        """Kafka's numbers of some rows; what is not finite becomes NaN, or 0 where nothing was throttled."""
        known = np.isfinite(numbers)
        if meaning is Meaning.TOKENS:
            known &= numbers < _UNLIMITED_TOKENS
            if self.placed.rules is not None:
                known &= ~np.isnan(self.layout.limits[rows])
        divisor: Floats | float = meaning.divisor
        if meaning is Meaning.USAGE:
            divisor = self._usage_divisors[rows]
        throttle = meaning is Meaning.THROTTLE_TIME
        instead = self._unthrottled[rows] if throttle else np.nan
        return np.where(known, numbers / divisor, instead)


class NodeNumbers:
    """The numbers of a node's table about the node itself."""

    def __init__(self, node: NodeColumns, values: Floats) -> None:
        self.node = node
        self.reported = defaultdict[Meaning, dict[str, float | None]](dict)
        """By request, listener, address, part or quota type; None where the node gives no finite number."""
        self.finite = defaultdict[Meaning, dict[str, float]](dict)
        """The same without those that are None."""
        for meaning, places in node.places.items():
            divisor, instead = meaning.divisor, 0.0 if meaning in _THROTTLES else None
            for about, at in places.items():
                value = float(values[at])
                number = value / divisor if isfinite(value) else instead
                self.reported[meaning][about] = number
                if number is not None:
                    self.finite[meaning][about] = number
        leads = self.one(Meaning.ACTIVE_CONTROLLER)
        self.leads = None if leads is None else leads > 0
        """Whether the node reports that it is the active controller; None when it reports neither."""

    def one(self, meaning: Meaning) -> float | None:
        """The only number of a meaning, or the last one; None when the node gave no number."""
        return next(reversed(self.reported[meaning].values()), None)


class NodeUsages:
    """Makes the nodes' part of snapshots."""

    def __init__(self) -> None:
        self.sums = defaultdict[str, HistogramSums](HistogramSums)
        """By node."""
        self._limits: Limits | None = None
        self._ip_limits: IpLimits | None = None

    def of(
        self,
        nodes: Sequence[NodeNumbers],
        limits: Limits | None,
        shown: UsageReader,
        read: Columns,
        stale: NDArray[np.bool_],
        leads: Mapping[str, bool | None],
    ) -> tuple[NodeUsage, ...]:
        """The usage of each node, where ``read`` is what the entities used that are ``shown``, and all others read are ``stale``."""
        rules, layout = shown.placed.rules, shown.placed.layout
        counts = np.zeros((len(layout.nodes), len(TYPES)), np.intp)
        rows = np.flatnonzero(stale)
        np.add.at(counts, (layout.node_numbers[rows], layout.types[rows]), 1)
        by_node = dict(zip(layout.nodes, counts.tolist(), strict=True))
        differ = {} if rules is None else _disagreements(shown, read)
        usages = []
        for numbers in nodes:
            node_id = numbers.node.node_id
            found = by_node.get(node_id, [0] * len(TYPES))
            of_types = dict(zip(TYPES, found, strict=True))
            if rules is None:
                mutations = QuotaType.CONTROLLER_MUTATION
                follows = leads[node_id] is False
                of_types = {mutations: of_types[mutations]} if follows else {}
            static = shown.placed.static.get(node_id, {})
            usages.append(self._of_node(numbers, limits, static, of_types, differ.get(node_id)))
        return tuple(usages)

    def _of_node(
        self,
        numbers: NodeNumbers,
        limits: Limits | None,
        static: StaticLimits,
        stale_entities: Mapping[QuotaType, int],
        utilization_disagreements: int | None,
    ) -> NodeUsage:
        node_id, finite = numbers.node.node_id, numbers.finite
        settings = limits.nodes.get(node_id) if limits else None
        known = settings or NodeSettings()
        sums = self.sums[node_id]
        sums.began(numbers.one(Meaning.STARTED_AT))
        mean = numbers.one(Meaning.CONTROLLER_EVENT_MEAN)
        events = numbers.one(Meaning.CONTROLLER_EVENT_COUNT)
        waited = None
        if not numbers.leads or mean is None:
            events = None
        elif events is not None:
            waited = sums.sum_ms("controller events", mean, events) / MILLISECONDS
        callback = None
        if settings or numbers.node.tags or static:
            callback = bool(numbers.node.tags or static or known.quota_callback_class is not None)
        counts = finite[Meaning.REQUEST_THROTTLE_COUNT]
        requests = {request for request, count in counts.items() if count > 0} - _REPEATS_OF_FETCH
        throttled: dict[str, float] = {}
        for request, mean in finite[Meaning.REQUEST_THROTTLE_MEAN].items():
            if request in requests:
                seconds = sums.sum_ms(request, mean, counts[request]) / MILLISECONDS
                if seconds > 0 or request not in _FORWARDED:
                    throttled[request] = seconds
        return NodeUsage(
            broker=node_id,
            delay_queue_size={QuotaType(kind): size for kind, size in finite[Meaning.DELAY_QUEUE_SIZE].items()},
            exempt_request_threads=numbers.one(Meaning.EXEMPT_REQUEST_TIME),
            request_capacity_threads=known.request_capacity_threads,
            request_throttled_seconds=throttled,
            throttling_errors=finite[Meaning.THROTTLING_ERRORS],
            stale_entities=stale_entities,
            quota_callback=callback,
            static_limits=static,
            throttle_factor=numbers.one(Meaning.CALLBACK_FACTOR),
            utilization_disagreements=utilization_disagreements,
            active_controller=numbers.leads,
            controller_events=events,
            controller_event_queue_seconds=waited,
            load=NodeLoad(
                # meters are 0 until they tick, 5 s after a node's start
                handlers_idle=numbers.one(Meaning.HANDLER_IDLE) or None,
                handlers_idle_seconds=numbers.one(Meaning.HANDLER_IDLE_TIME),
                pools_idle={pool: idle for pool, idle in finite[Meaning.POOL_IDLE].items() if idle},
                pools_idle_seconds=finite[Meaning.POOL_IDLE_TIME],
                network_idle=numbers.one(Meaning.NETWORK_IDLE),
                controller_idle=numbers.one(Meaning.CONTROLLER_IDLE),
                request_queue_size=numbers.one(Meaning.REQUEST_QUEUE_SIZE),
                request_queue_seconds={
                    (request, percentile): seconds
                    for meaning, percentile in PERCENTILES.items()
                    for request, seconds in finite[meaning].items()
                    if request in requests  # a histogram without one has percentiles of 0, which are none
                },
            ),
            connections=self._connections(numbers, limits, known),
            replication=_rates(
                numbers.reported[Meaning.REPLICATION], known.replication_limits.get, also=known.replication_limits
            ),
            remote_storage=_rates(
                numbers.reported[Meaning.REMOTE_STORAGE],
                known.remote_storage_limits.get,
                waits := numbers.reported[Meaning.REMOTE_STORAGE_THROTTLE],
                also={**known.remote_storage_limits, **waits},
            ),
        )

    def _connections(self, numbers: NodeNumbers, limits: Limits | None, settings: NodeSettings) -> ConnectionUsage:
        if limits is not self._limits:
            self._limits = limits
            self._ip_limits = IpLimits(limits.connection_limits) if limits else None
        rules = self._ip_limits
        default, own = settings.connection_limit, settings.listener_connection_limits
        reported, total = numbers.reported, numbers.one(Meaning.BROKER_CONNECTIONS)
        ips = {
            ip: rate for ip, rate in reported[Meaning.IP_CONNECTIONS].items() if rules is None or rules.may_limit(ip)
        }
        return ConnectionUsage(
            broker=LimitedRate(rate=total, limit=default),
            listeners=_rates(
                reported[Meaning.LISTENER_CONNECTIONS],
                lambda name: own.get(name.lower(), default),
                reported[Meaning.LISTENER_CONNECTION_THROTTLE],
            ),
            ips=_rates(ips, lambda ip: rules.limit(ip) if rules else None),
            ip_throttle_time_seconds=numbers.finite[Meaning.IP_CONNECTION_THROTTLE],
        )


class HistogramSums:
    """
    Sums of one node's histograms by name, which never go back while the node runs.

    Kafka's histograms run since the start, so mean times count is the sum, and of milliseconds that is
    a whole number. But the two are read one after the other, and events come in between: a
    sum can come out a little too high, and a counter that then went back would look like a restart.
    """

    def __init__(self) -> None:
        self._started_at: float | None = None
        self._sums: dict[str, tuple[float, float]] = {}

    def began(self, started_at: float | None) -> None:
        """Forget everything when the node was started again; None when it does not report that."""
        if started_at != self._started_at:
            self._started_at = started_at
            self._sums.clear()

    def sum_ms(self, name: str, mean_ms: float, count: float) -> float:
        """The sum of the histogram of this name, in ms."""
        total = float(round(mean_ms * count))
        last_count, last_total = self._sums.get(name, (0.0, 0.0))
        if count >= last_count:
            total = max(total, last_total)
        if name not in self._sums and len(self._sums) >= _MOST_HISTOGRAMS:
            del self._sums[next(iter(self._sums))]
        self._sums[name] = (count, total)
        return total


def _disagreements(shown: UsageReader, read: Columns) -> dict[str, int]:
    """
    By node how many entities have another utilization than the node reports; without nodes that report none (KIP-1373).

    The node computes with the limit that it enforces: it differs from the one that was read from the Admin API.
    """
    layout = shown.layout
    places = shown.places.get(Meaning.REPORTED_UTILIZATION, np.empty(0))
    rows = np.flatnonzero(places >= 0)
    reported, ours = read.reported_utilization[rows], read.utilization[rows]
    apart = np.abs(reported - ours) > _TOLERANCE * np.fmax(1.0, np.abs(reported))
    apart |= np.isnan(reported) != np.isnan(ours)
    apart &= ~np.isnan(read.usage[rows])
    numbers = layout.node_numbers[rows]
    return {layout.nodes[number]: int(apart[numbers == number].sum()) for number in set(numbers.tolist())}


def _rates(
    rates: Mapping[str, float | None],
    limit: Callable[[str], float | None],
    waits: Mapping[str, float | None] = MappingProxyType({}),
    also: Iterable[str] = (),
) -> dict[str, LimitedRate]:
    """Rates by name with their limits; a limit is shown ``also`` where it is not used."""
    return {
        name: LimitedRate(rate=rates.get(name), limit=limit(name), throttle_time_seconds=waits.get(name))
        for name in dict.fromkeys((*rates, *also))
    }
