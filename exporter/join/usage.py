"""The usage of nodes and of their entities, from the numbers of all tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import is_not
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family, FamilyType
from quotascope.metrics.kafka.entities import QuotaType

from ..coverage import Coverage
from ..limits import Limits, NodeSettings
from ..mapping import BY_MEANING, MILLISECONDS, Guard, Meaning
from ..snapshot import Columns, Floats, Layout, NodeUsage
from ..snapshot.layout import TYPES, Rows, fixed
from .limiting import IpLimits, has_callback
from .placing import OF_ENTITIES, NodeColumns, Placed

_UNLIMITED_TOKENS: Final = 9e15
"""
More tokens than any limit gives. A bucket without a limit grows by Long.MAX a second up to
1e20: within a millisecond of losing its limit it holds this many.
"""
_OF_USAGE: Final = np.array([kind.unit.divisor for kind in TYPES])
"""Kafka's unit of a usage, divided by this, is ours."""
_TOLERANCE: Final = 0.02
"""
Tolerated difference, as a part of the limit, or of the reported usage if that is more: the rate moves between two
readings.
"""
_REPEATS_OF_FETCH: Final = {"FetchConsumer", "FetchFollower"}
_FORWARDED: Final = {"CreateTopics", "CreatePartitions", "DeleteTopics"}
"""
Requests with throttles that Kafka's histogram lacks under KRaft, where brokers forward them: it stays at 0 although
they are throttled. (With ZooKeeper it counts them.)
"""
_MOST_COUNTERS: Final = 2_000
"""Most counters that are kept: far more than Kafka's two for each request, since an agent may make names up."""
OVERDUE_SECONDS: Final = 300.0
"""
Seconds by which a counter reaches a right reading again, since numbers asked for more than 120 s ago are not shown.
"""
_MOST_STARTS: Final = 4
"""Starts of a node whose counters are remembered."""
_Numbers: TypeAlias = Mapping[Family, Mapping[tuple[str, ...], float | None]]
"""Numbers of a node by family, and by its labels after the first."""


class UsageReader:
    """
    The entities that count, and where to read what they used.

    The ``previous`` layout is kept if entities and limits are the same.
    """

    def __init__(self, placed: Placed, counted: NDArray[np.bool_], previous: Layout) -> None:
        layout, rows = placed.layout, np.flatnonzero(counted)
        if len(rows) < len(layout):
            layout = layout.changed(np.flatnonzero(~counted))
        if len(layout) == len(previous) and not any(map(is_not, layout.entities, previous.entities)):
            layout = previous
        new_rows = np.full(len(placed.layout), -1)
        new_rows[rows] = np.arange(len(rows))
        self.placed, self.counted, self.layout = placed, counted, layout
        self.places = {meaning: place[rows] for meaning, place in placed.places.items()}
        self._folded = {
            meaning: (places[new_rows[rows_of_places] >= 0], new_rows[rows_of_places[new_rows[rows_of_places] >= 0]])
            for meaning, (places, rows_of_places) in placed.folded.items()
        }
        self._usage_divisors = _OF_USAGE[layout.types]
        # NaN after a minute without a throttle is 0 where a node measures it: it has the column. That does not hold for
        # controller mutations: under KRaft the column is there, and never more than NaN.
        nowhere = np.full(len(layout), -1)
        measured = self.places.get(Meaning.THROTTLE_TIME, nowhere) >= 0
        measured &= layout.types != TYPES.index(QuotaType.CONTROLLER_MUTATION)
        self._unthrottled = np.where(measured, 0.0, np.nan)

    def read(self, values: Floats) -> Columns:
        """Return the usage of the entities, without causes; ``values`` are the numbers of all tables and a NaN."""
        layout = self.layout
        columns: dict[str, Any] = dict.fromkeys(OF_ENTITIES.values(), layout.absent)
        for meaning, places in self.places.items():
            column = self._in_base_units(meaning, values[places], slice(None))
            if meaning in self._folded:
                self._fold(meaning, column, values)
            columns[OF_ENTITIES[meaning]] = layout.column(column)
        causes = np.zeros(len(layout), np.int8)
        return Columns(layout=layout, causes=fixed(causes), **columns)

    def _fold(self, meaning: Meaning, column: Floats, values: Floats) -> None:
        """Add usages up where several entities of a callback are shown as one, and take the longest throttle."""
        places, rows = self._folded[meaning]
        numbers = self._in_base_units(meaning, values[places], rows)
        column[rows] = np.nan
        if meaning is Meaning.USAGE:
            # sorted by size, so that the sum does not depend on the order of rows
            sizes = np.lexsort((numbers, rows))
            column[rows[~np.isnan(numbers)]] = 0.0
            np.add.at(column, rows[sizes], np.nan_to_num(numbers[sizes]))
        else:
            np.fmax.at(column, rows, numbers)

    def _in_base_units(self, meaning: Meaning, numbers: Floats, rows: Rows | slice) -> Floats:
        """
        Return Kafka's numbers of some rows in base units.

        What is not finite becomes NaN, or 0 where nothing was throttled.
        """
        is_number = np.isfinite(numbers)
        if meaning is Meaning.TOKENS:
            is_number &= numbers < _UNLIMITED_TOKENS
            is_number &= ~np.isnan(self.layout.limits[rows]) | self.layout.limits_unknown[rows]
        divisor: Floats | float = BY_MEANING[meaning].divisor
        if meaning is Meaning.USAGE:
            divisor = self._usage_divisors[rows]
        throttle = meaning is Meaning.THROTTLE_TIME
        instead = self._unthrottled[rows] if throttle else np.nan
        return np.where(is_number, numbers / divisor, instead)


class NodeNumbers:
    """The numbers about the node itself in its table."""

    def __init__(self, node: NodeColumns, values: Floats, coverage: Coverage, asked_at: float | None = None) -> None:
        self.node, self.coverage, self.asked_at = node, coverage, asked_at
        self.numbers: dict[Meaning | Family, dict[tuple[str, ...], float | None]] = {}
        """
        By meaning, and by request, listener, address, part or quota type; None where the node gives no finite number.
        """
        for meaning, places in node.places.items():
            row = BY_MEANING[meaning]
            instead = 0.0 if row.guard is Guard.NAN_IS_ZERO else None
            numbers = {about: float(values[place]) for about, place in places.items()}
            self.numbers[meaning] = {
                about: number / row.divisor if isfinite(number) else instead for about, number in numbers.items()
            }
        leads = self.one(Meaning.ACTIVE_CONTROLLER)
        self.leads = None if leads is None else leads > 0
        """True if the node reports that it is the active controller; None when it reports neither."""

    def one(self, meaning: Meaning) -> float | None:
        """Return the only number of a meaning, or the last one; None when the node gave no number."""
        return next(reversed(self.numbers.get(meaning, {}).values()), None)

    def by_name(self, meaning: Meaning) -> dict[str, float]:
        """Return the known numbers of a meaning, by request or quota type."""
        return {name: number for (name,), number in self.numbers.get(meaning, {}).items() if number is not None}

    def passed_on(self, requests: Container[str]) -> dict[Family, dict[tuple[str, ...], float | None]]:
        """Return the numbers that are shown unchanged, by family; some only for ``requests`` that were made."""
        families: dict[Family, dict[tuple[str, ...], float | None]] = {}
        for family, numbers in self.numbers.items():
            if isinstance(family, Family):
                guard = BY_MEANING[family].guard
                families[family] = {
                    about: None if guard is Guard.ZERO_IS_UNKNOWN and number == 0 else number
                    for about, number in numbers.items()
                    if guard is not Guard.REQUESTS_ONLY or about[0] in requests
                }
        return families


class NodeUsages:
    """Makes the part of snapshots that is about nodes."""

    def __init__(self) -> None:
        self.sums = defaultdict[str, NodeCounters](NodeCounters)
        """Counters of each node, by node id."""
        self._limits: Limits | None = None
        self._ip_limits: IpLimits | None = None

    def of(  # noqa: PLR0913, PLR0917 - what nodes reported, and what was made of it
        self,
        nodes: Sequence[NodeNumbers],
        limits: Limits | None,
        reader: UsageReader,
        columns: Columns,
        stale: NDArray[np.bool_],
        leads: Mapping[str, bool | None],
        now_seconds: float,
    ) -> tuple[NodeUsage, ...]:
        """
        Return the usage of each node at these steady seconds.

        ``columns`` hold the usage of the entities of the ``reader``; all others that were read are ``stale``.
        """
        rules, layout = reader.placed.rules, reader.placed.layout
        counts = np.zeros((len(layout.nodes), len(TYPES)), np.intp)
        rows = np.flatnonzero(stale)
        np.add.at(counts, (layout.node_numbers[rows], layout.types[rows]), 1)
        by_node = dict(zip(layout.nodes, counts.tolist(), strict=True))
        differ = _disagreements(reader, columns)
        usages = []
        for numbers in nodes:
            node_id = numbers.node.node_id
            stale_counts = by_node.get(node_id, [0] * len(TYPES))
            of_types = dict(zip(TYPES, stale_counts, strict=True))
            if rules.on(node_id) is None:
                mutations = QuotaType.CONTROLLER_MUTATION
                follows = leads[node_id] is False
                of_types = {mutations: of_types[mutations]} if follows else {}
            self.sums[node_id].began(numbers.one(Meaning.STARTED_AT), now_seconds, numbers.asked_at)
            usages.append(self._of_node(numbers, limits, reader.placed, of_types, differ.get(node_id)))
        return tuple(usages)

    def _of_node(
        self,
        numbers: NodeNumbers,
        limits: Limits | None,
        placed: Placed,
        stale_entities: Mapping[QuotaType, int],
        utilization_disagreements: int | None,
    ) -> NodeUsage:
        node_id = numbers.node.node_id
        static = placed.static.get(node_id, {})
        settings = limits.nodes.get(node_id) if limits else None
        sums = self.sums[node_id]
        mean = numbers.one(Meaning.CONTROLLER_EVENT_MEAN)
        events = numbers.one(Meaning.CONTROLLER_EVENT_COUNT)
        queue_ms = None
        if not numbers.leads or mean is None:
            events = None
        elif events is not None:
            queue_ms = sums.sum_ms("controller events", mean, events)
            events = sums.count("controller event count", events)
        callback = has_callback(limits, node_id, plugin=bool(static))
        unexplained = None if callback else numbers.node.unexplained
        counts = numbers.by_name(Meaning.REQUEST_THROTTLE_COUNT)
        requests = {request for request, count in counts.items() if count > 0} - _REPEATS_OF_FETCH
        throttled: dict[str, float] = {}
        for request, mean in numbers.by_name(Meaning.REQUEST_THROTTLE_MEAN).items():
            if request in requests:
                delay = sums.sum_ms(request, mean, counts[request])
                if delay is not None and (delay > 0 or request not in _FORWARDED):
                    throttled[request] = delay / MILLISECONDS
        passed_on = sums.held(numbers.passed_on(requests))
        return NodeUsage(
            broker=node_id,
            numbers={
                **passed_on,
                **self._limits_of(passed_on, limits, settings or NodeSettings()),
                catalog.REQUEST_THROTTLED_SECONDS: {(request,): seconds for request, seconds in throttled.items()},
                catalog.CONTROLLER_EVENTS: {(): events},
                catalog.CONTROLLER_EVENT_QUEUE_SECONDS: {(): None if queue_ms is None else queue_ms / MILLISECONDS},
                catalog.UTILIZATION_DISAGREEMENTS: {(): utilization_disagreements},
            },
            delay_queue_size={
                QuotaType(kind): size for kind, size in numbers.by_name(Meaning.DELAY_QUEUE_SIZE).items()
            },
            stale_entities=stale_entities,
            quota_callback=callback,
            overruled=node_id in placed.rules.overruled,
            foreign_labels=unexplained.labels if unexplained and callback is None else (),
            coverage=numbers.coverage.without(unexplained),
            static_limits=static,
            active_controller=numbers.leads,
            started_at=numbers.one(Meaning.STARTED_AT),
        )

    def _limits_of(
        self, passed_on: _Numbers, limits: Limits | None, settings: NodeSettings
    ) -> dict[Family, dict[tuple[str, ...], float | None]]:
        """Return the limits of a node beside those of clients, and the addresses that may have one."""
        if limits is not self._limits:
            self._limits = limits
            self._ip_limits = IpLimits(limits.connection_limits) if limits else None
        rules = self._ip_limits
        default, listener_limits = settings.connection_limit, settings.listener_connection_limits
        listeners = passed_on.get(catalog.LISTENER_CONNECTIONS_PER_SECOND, {})
        ips = {
            ip: rate
            for ip, rate in passed_on.get(catalog.IP_CONNECTIONS_PER_SECOND, {}).items()
            if rules is None or rules.may_limit(*ip)
        }
        return {
            catalog.REQUEST_CAPACITY_THREADS: {(): settings.request_capacity_threads},
            catalog.BROKER_CONNECTION_LIMIT: {(): default},
            catalog.LISTENER_CONNECTION_LIMIT: {
                (name,): listener_limits.get(name.lower(), default) for (name,) in listeners
            },
            catalog.IP_CONNECTIONS_PER_SECOND: ips,
            catalog.IP_CONNECTION_LIMIT: {ip: rules.limit(*ip) if rules else None for ip in ips},
            catalog.REPLICATION_LIMIT: {(name,): limit for name, limit in settings.replication_limits.items()},
            catalog.REMOTE_STORAGE_LIMIT: {(name,): limit for name, limit in settings.remote_storage_limits.items()},
        }


@dataclass(slots=True)
class _Counter:
    value: float
    reached_at: float
    """The last time at which a reading was this high, in steady seconds."""
    of_start: bool
    """True if the value is known to belong to the present start."""
    asked_at: float | None
    """The time at which that reading was asked for, which tells one answer from another."""
    earlier_value: float = 0.0
    """The highest reading before this one."""
    confirmed: bool = False
    """True if a second reading was as high."""
    lower: float | None = None
    """The first reading since that was lower."""


class NodeCounters:
    """
    Counters of one node by name, which never go back while the node runs.

    A second source of the node may take over with an older answer: a counter that then went back would look like a
    restart, and be counted again. An agent may also claim the id of another node for a while: the counters of the last
    starts are remembered.

    Of a source that reports no start of the node, where another one does, a lower reading is an older answer or a
    restart: the counter is unknown until it is reached again, or overdue. A single reading that no other one confirms
    does not hold a counter for ever: when it is overdue, the counter goes on with what is read, if to hold it would
    hide more than is counted again.

    Kafka's histograms run since the start, so mean times count is the sum, and of milliseconds that is
    a whole number. But the two are read one after the other, and events come in between: a
    sum can come out a little too high.
    """

    def __init__(self) -> None:
        self._started_at: float | None = None
        self._starts: dict[float | None, dict[str, _Counter]] = {}
        self._counts: dict[str, _Counter] = {}
        """Counters of the present start, by name."""
        self._at = 0.0
        self._asked_at: float | None = None
        self._reports_start = False

    def began(self, started_at: float | None, now_seconds: float, asked_at: float | None = None) -> None:
        """
        Switch to the counters of a start of the node (Unix time), as read at these steady seconds.

        The start is None when the source does not report it. An answer that is shown again has the same ``asked_at``.
        """
        self._at, self._asked_at, self._reports_start = now_seconds, asked_at, started_at is not None
        if self._starts and started_at in {None, self._started_at}:
            return
        if self._started_at is None and started_at not in self._starts:
            counts = self._starts.pop(None, {})  # counters of an unknown start are taken for those of this start
        else:
            counts = self._starts.pop(started_at, {})
        self._started_at, self._counts = started_at, counts
        self._starts[started_at] = counts
        if len(self._starts) > _MOST_STARTS:
            del self._starts[next(iter(self._starts))]

    def count(self, name: str, count: float) -> float | None:
        """Return the counter of this name; None where it is unknown."""
        counter = self._counts.get(name)
        if counter is None or (self._started_at is None and count < counter.value):
            self._keep(name, _Counter(count, self._at, self._reports_start, self._asked_at))
            return count
        if count == counter.value and self._asked_at is not None and counter.asked_at == self._asked_at:
            return count  # the same answer once more, which confirms nothing
        if count >= counter.value:
            counter.confirmed = count == counter.value
            counter.earlier_value = counter.value
            counter.value, counter.reached_at, counter.lower = count, self._at, None
            counter.asked_at = self._asked_at
            counter.of_start |= self._reports_start
            return count
        certain = self._reports_start and counter.of_start
        lower = counter.lower = count if counter.lower is None else counter.lower
        if self._at - counter.reached_at > OVERDUE_SECONDS and count > lower:
            if not certain:
                self._keep(name, _Counter(count, self._at, self._reports_start, self._asked_at))
                return count
            if not counter.confirmed and counter.value > 2 * count:
                count = max(count, counter.earlier_value)
                self._keep(name, _Counter(count, self._at, of_start=True, asked_at=self._asked_at))
                return count
        return counter.value if certain else None

    def held(self, families: _Numbers) -> _Numbers:
        """Return numbers of a node, in which counters never go back."""
        return {
            family: {
                about: None if number is None else self.count(f"{family.name} {about}", number)
                for about, number in numbers.items()
            }
            if family.type is FamilyType.COUNTER
            else numbers
            for family, numbers in families.items()
        }

    def sum_ms(self, name: str, mean_ms: float, count: float) -> float | None:
        """Return the sum of the histogram of this name, in ms; None where it is unknown, or no finite number."""
        product = mean_ms * count
        if not isfinite(product):
            return None
        total, of_sum = float(round(product)), f"{name} sum"
        events, sum_counter = self._counts.get(name), self._counts.get(of_sum)
        if self._started_at is None and events is not None and sum_counter is not None:
            if count < events.value:
                del self._counts[of_sum]
            else:
                total = max(total, sum_counter.value)
        self.count(name, count)
        return self.count(of_sum, total)

    def _keep(self, name: str, counter: _Counter) -> None:
        if name not in self._counts and len(self._counts) >= _MOST_COUNTERS:
            del self._counts[next(iter(self._counts))]
        self._counts[name] = counter


def _disagreements(reader: UsageReader, columns: Columns) -> dict[str, int]:
    """
    Return for each node how many entities have another utilization than the node itself reports (KIP-1373).

    Nodes that report no utilization are left out.

    The node computes with the limit that it enforces: it differs from the one that was read from the Admin API.
    """
    layout = reader.layout
    places = reader.places.get(Meaning.REPORTED_UTILIZATION, np.empty(0))
    rows = np.flatnonzero(places >= 0)
    rows = rows[~layout.limits_unknown[rows]]
    reported, ours = columns.reported_utilization[rows], columns.utilization[rows]
    is_different = np.abs(reported - ours) > _TOLERANCE * np.fmax(1.0, np.abs(reported))
    is_different |= np.isnan(reported) != np.isnan(ours)
    is_different &= ~np.isnan(columns.usage[rows])
    numbers = layout.node_numbers[rows]
    return {layout.nodes[number]: int(is_different[numbers == number].sum()) for number in set(numbers.tolist())}
