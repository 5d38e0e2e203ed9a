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
from .placing import COLUMN_OF_MEANING, NodeColumns, Placed

_UNLIMITED_TOKENS: Final = 9e15
"""
More tokens than any limit gives. A bucket without a limit grows by Long.MAX a second up to
1e20: within a millisecond of losing its limit it holds this many.
"""
_USAGE_DIVISORS: Final = np.array([kind.unit.divisor for kind in TYPES])
"""Divisors that convert Kafka's unit of a usage to the exporter's, by quota type."""
_TOLERANCE: Final = 0.02
"""
Tolerated difference of two utilizations, relative to the larger of 1 and the reported one.

The rate moves between two readings.
"""
_REPEATS_OF_FETCH: Final = {"FetchConsumer", "FetchFollower"}
_FORWARDED: Final = {"CreateTopics", "CreatePartitions", "DeleteTopics"}
"""
Requests that brokers forward under KRaft, so that Kafka's histogram of throttles stays at 0 when they are throttled.

With ZooKeeper it counts them.
"""
_MOST_COUNTERS: Final = 2_000
"""Most counters of a node that are kept: many more than Kafka has, and a bound on names that an agent makes up."""
OVERDUE_SECONDS: Final = 300.0
"""
Time after which a counter that has not reached its value again is overdue.

A right reading would have been reached by then, since numbers that were asked for more than 120 s ago are not shown.
"""
_MOST_STARTS: Final = 4
"""Starts of a node whose counters are remembered."""
_Numbers: TypeAlias = Mapping[Family, Mapping[tuple[str, ...], float | None]]
"""Numbers of a node by family, and by its labels after the first."""


class UsageReader:
    """
    Reads the usage of the entities that count.

    Args:
        placed: The places of all numbers.
        counted: Mask of the rows of ``placed`` that count.
        previous: The previous layout, which is kept if entities and limits are the same.

    """

    def __init__(self, placed: Placed, counted: NDArray[np.bool_], previous: Layout) -> None:
        layout, counted_rows = placed.layout, np.flatnonzero(counted)
        if len(counted_rows) < len(layout):
            layout = layout.changed(np.flatnonzero(~counted))
        if len(layout) == len(previous) and not any(map(is_not, layout.entities, previous.entities)):
            layout = previous
        self.placed, self.counted, self.layout = placed, counted, layout
        self.places = {meaning: places[counted_rows] for meaning, places in placed.places.items()}
        """The place of the number of each row of ``layout``, by meaning; -1 for a row without a number."""
        row_here = np.full(len(placed.layout), -1)  # of each placed row; -1 if it does not count
        row_here[counted_rows] = np.arange(len(counted_rows))
        self._folded: dict[Meaning, tuple[Rows, Rows]] = {}
        """Places and rows in this layout of the numbers that are folded, by meaning."""
        for meaning, (places, placed_rows) in placed.folded.items():
            rows = row_here[placed_rows]
            self._folded[meaning] = places[rows >= 0], rows[rows >= 0]
        self._usage_divisors = _USAGE_DIVISORS[layout.types]
        # After a minute without a throttle, Kafka reports NaN. It means 0 if the node measures throttles, which it does
        # if it has the column. For controller mutations under KRaft, the column exists and is always NaN.
        nowhere = np.full(len(layout), -1)
        is_measured = self.places.get(Meaning.THROTTLE_TIME, nowhere) >= 0
        is_measured &= layout.types != TYPES.index(QuotaType.CONTROLLER_MUTATION)
        self._throttle_time_for_nan = np.where(is_measured, 0.0, np.nan)

    def read(self, values: Floats) -> Columns:
        """Return the columns without causes, from the numbers of all tables and a NaN at the end."""
        layout = self.layout
        columns: dict[str, Any] = dict.fromkeys(COLUMN_OF_MEANING.values(), layout.absent)
        for meaning, places in self.places.items():
            column = self._in_base_units(meaning, values[places], slice(None))
            if meaning in self._folded:
                self._fold(meaning, column, values)
            columns[COLUMN_OF_MEANING[meaning]] = layout.column(column)
        causes = np.zeros(len(layout), np.int8)
        return Columns(layout=layout, causes=fixed(causes), **columns)

    def _fold(self, meaning: Meaning, column: Floats, values: Floats) -> None:
        """Set the values of rows that show several entities of a callback as one: the sum, or the longest throttle."""
        places, rows = self._folded[meaning]
        numbers = self._in_base_units(meaning, values[places], rows)
        column[rows] = np.nan
        if meaning is Meaning.USAGE:
            column[rows[~np.isnan(numbers)]] = 0.0  # a row without a known number stays NaN
            # added by size, so that the sum does not depend on the order of the entities
            order = np.lexsort((numbers, rows))
            np.add.at(column, rows[order], np.nan_to_num(numbers[order]))
        else:
            np.fmax.at(column, rows, numbers)

    def _in_base_units(self, meaning: Meaning, numbers: Floats, rows: Rows | slice) -> Floats:
        """
        Return Kafka's numbers of some rows in base units.

        A number that is not finite becomes NaN, or 0 if it is a measured throttle time.
        """
        is_number = np.isfinite(numbers)
        if meaning is Meaning.TOKENS:  # the tokens of a bucket without a limit say nothing
            is_number &= numbers < _UNLIMITED_TOKENS
            is_number &= ~np.isnan(self.layout.limits[rows]) | self.layout.limits_unknown[rows]
        divisor: Floats | float = BY_MEANING[meaning].divisor
        if meaning is Meaning.USAGE:
            divisor = self._usage_divisors[rows]
        replacement: Floats | float = np.nan
        if meaning is Meaning.THROTTLE_TIME:
            replacement = self._throttle_time_for_nan[rows]
        return np.where(is_number, numbers / divisor, replacement)


class NodeNumbers:
    """The numbers about a node itself in its table, in base units."""

    def __init__(self, node: NodeColumns, values: Floats, coverage: Coverage, asked_at: float | None = None) -> None:
        self.node, self.coverage, self.asked_at = node, coverage, asked_at
        self.numbers: dict[Meaning | Family, dict[tuple[str, ...], float | None]] = {}
        """
        Numbers by meaning, and then by request, listener, address, part or quota type.

        None if the node reports no finite number.
        """
        for meaning, places in node.places.items():
            attribute = BY_MEANING[meaning]
            replacement = 0.0 if attribute.guard is Guard.NAN_IS_ZERO else None
            numbers = {about: float(values[place]) for about, place in places.items()}
            self.numbers[meaning] = {
                about: number / attribute.divisor if isfinite(number) else replacement
                for about, number in numbers.items()
            }
        leads = self.last(Meaning.ACTIVE_CONTROLLER)
        self.leads = None if leads is None else leads > 0
        """Whether the node reports that it is the active controller; None if it does not report it."""

    def last(self, meaning: Meaning) -> float | None:
        """Return the last number of a meaning, which is usually the only one; None without a number."""
        return next(reversed(self.numbers.get(meaning, {}).values()), None)

    def by_name(self, meaning: Meaning) -> dict[str, float]:
        """Return the known numbers of a meaning by request or quota type."""
        return {name: number for (name,), number in self.numbers.get(meaning, {}).items() if number is not None}

    def passed_on(self, requests: Container[str]) -> dict[Family, dict[tuple[str, ...], float | None]]:
        """
        Return the numbers that are shown unchanged, by family.

        Args:
            requests: The requests that clients have made. Some families are left out for other requests.

        """
        families: dict[Family, dict[tuple[str, ...], float | None]] = {}
        for family, numbers in self.numbers.items():
            if isinstance(family, Family):  # a number with a `Meaning` instead is not shown as it is
                guard = BY_MEANING[family].guard
                # a family with the guard `REQUESTS_ONLY` has the request as the first label
                families[family] = {
                    about: None if guard is Guard.ZERO_IS_UNKNOWN and number == 0 else number
                    for about, number in numbers.items()
                    if guard is not Guard.REQUESTS_ONLY or about[0] in requests
                }
        return families


class NodeUsages:
    """Makes the usages of nodes, and keeps their counters."""

    def __init__(self) -> None:
        self.counters = defaultdict[str, NodeCounters](NodeCounters)
        """Counters of a node by node id."""
        self._limits: Limits | None = None
        self._ip_limits: IpLimits | None = None

    def update(  # noqa: PLR0913, PLR0917 - what nodes reported, and what was made of it
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
        Return the usage of the nodes in a collection.

        Args:
            nodes: The numbers of the nodes.
            limits: The configured limits; None while they are unknown.
            reader: The reader of the columns.
            columns: The usage of the entities that count.
            stale: Mask of the placed rows that were read and do not count.
            leads: Whether a node is the active controller, by node; None if unknown.
            now_seconds: Steady time of the collection.

        """
        rules, layout = reader.placed.rules, reader.placed.layout
        stale_counts = np.zeros((len(layout.nodes), len(TYPES)), np.intp)
        stale_rows = np.flatnonzero(stale)
        np.add.at(stale_counts, (layout.node_numbers[stale_rows], layout.types[stale_rows]), 1)
        stale_counts_by_node = dict(zip(layout.nodes, stale_counts.tolist(), strict=True))
        disagreements = _disagreements(reader, columns)
        usages = []
        for numbers in nodes:
            node_id = numbers.node.node_id
            stale_counts_of_node = stale_counts_by_node.get(node_id, [0] * len(TYPES))
            stale_by_type = dict(zip(TYPES, stale_counts_of_node, strict=True))
            if rules.on(node_id) is None:
                # without rules, only the mutations of a node that does not lead are known to be stale
                mutations = QuotaType.CONTROLLER_MUTATION
                stale_by_type = {mutations: stale_by_type[mutations]} if leads[node_id] is False else {}
            self.counters[node_id].begin(numbers.last(Meaning.STARTED_AT), now_seconds, numbers.asked_at)
            usages.append(self._usage(numbers, limits, reader.placed, stale_by_type, disagreements.get(node_id)))
        return tuple(usages)

    def _usage(
        self,
        numbers: NodeNumbers,
        limits: Limits | None,
        placed: Placed,
        stale_entities: Mapping[QuotaType, int],
        utilization_disagreements: int | None,
    ) -> NodeUsage:
        """Return the usage of one node."""
        node_id = numbers.node.node_id
        static = placed.static.get(node_id, {})
        settings = limits.nodes.get(node_id) if limits else None
        counters = self.counters[node_id]
        events, queue_seconds = _controller_events(numbers, counters)
        callback = has_callback(limits, node_id, plugin=bool(static))
        unexplained = None if callback else numbers.node.unexplained  # a callback explains foreign tags
        # Kafka's histograms of throttles count each request, throttled or not
        counts = numbers.by_name(Meaning.REQUEST_THROTTLE_COUNT)
        requests = {request for request, count in counts.items() if count > 0} - _REPEATS_OF_FETCH
        throttled_seconds: dict[tuple[str, ...], float | None] = {}
        for request, mean_ms in numbers.by_name(Meaning.REQUEST_THROTTLE_MEAN).items():
            if request in requests:
                sum_ms = counters.sum_ms(request, mean_ms, counts[request])
                # the 0 of a forwarded request does not mean that it was never throttled
                if sum_ms is not None and (sum_ms > 0 or request not in _FORWARDED):
                    throttled_seconds[request,] = sum_ms / MILLISECONDS
        passed_on = counters.never_decreasing(numbers.passed_on(requests))
        return NodeUsage(
            broker=node_id,
            numbers={
                **passed_on,
                **self._limits_of(passed_on, limits, settings or NodeSettings()),
                catalog.REQUEST_THROTTLED_SECONDS: throttled_seconds,
                catalog.CONTROLLER_EVENTS: {(): events},
                catalog.CONTROLLER_EVENT_QUEUE_SECONDS: {(): queue_seconds},
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
            started_at=numbers.last(Meaning.STARTED_AT),
        )

    def _limits_of(
        self, passed_on: _Numbers, limits: Limits | None, settings: NodeSettings
    ) -> dict[Family, dict[tuple[str, ...], float | None]]:
        """Return the limits of a node other than clients' limits, and the rates of the addresses that may have one."""
        if limits is not self._limits:
            self._limits = limits
            self._ip_limits = IpLimits(limits.connection_limits) if limits else None
        ip_limits = self._ip_limits
        broker_limit, listener_limits = settings.connection_limit, settings.listener_connection_limits
        listeners = passed_on.get(catalog.LISTENER_CONNECTIONS_PER_SECOND, {})
        # an address is the only label, and so a tuple of one
        rate_by_ip = {
            ip: rate
            for ip, rate in passed_on.get(catalog.IP_CONNECTIONS_PER_SECOND, {}).items()
            if ip_limits is None or ip_limits.may_limit(*ip)
        }
        return {
            catalog.REQUEST_CAPACITY_THREADS: {(): settings.request_capacity_threads},
            catalog.BROKER_CONNECTION_LIMIT: {(): broker_limit},
            catalog.LISTENER_CONNECTION_LIMIT: {
                (name,): listener_limits.get(name.lower(), broker_limit) for (name,) in listeners
            },
            catalog.IP_CONNECTIONS_PER_SECOND: rate_by_ip,
            catalog.IP_CONNECTION_LIMIT: {ip: ip_limits.limit(*ip) if ip_limits else None for ip in rate_by_ip},
            catalog.REPLICATION_LIMIT: {(name,): limit for name, limit in settings.replication_limits.items()},
            catalog.REMOTE_STORAGE_LIMIT: {(name,): limit for name, limit in settings.remote_storage_limits.items()},
        }


def _controller_events(numbers: NodeNumbers, counters: NodeCounters) -> tuple[float | None, float | None]:
    """Return the number of controller events and the seconds that they queued; None if the node does not lead."""
    mean_ms = numbers.last(Meaning.CONTROLLER_EVENT_MEAN)
    events = numbers.last(Meaning.CONTROLLER_EVENT_COUNT)
    if not numbers.leads or mean_ms is None or events is None:
        return None, None
    queue_ms = counters.sum_ms("controller events", mean_ms, events)
    events = counters.count("controller event count", events)
    return events, None if queue_ms is None else queue_ms / MILLISECONDS


@dataclass(slots=True)
class _Counter:
    """The highest reading of a counter."""

    value: float
    reached_at: float
    """The last steady time at which a reading was this high."""
    of_start: bool
    """True if the value is known to belong to the present start."""
    asked_at: float | None
    """The time at which that reading was asked for, which distinguishes answers."""
    earlier_value: float = 0.0
    """The highest reading before this one."""
    confirmed: bool = False
    """True if a second reading was as high."""
    lower: float | None = None
    """The first lower reading since."""


class NodeCounters:
    """
    Counters of one node by name, which never decrease while the node runs.

    A second source of the node may take over with an older answer. A counter that decreased then would look like a
    restart, and Prometheus would count it again. An agent may also claim the id of another node for a while, so the
    counters of the last starts are kept.

    A source may report no start of the node while another one does. Then a lower reading is an older answer or a
    restart, and the counter is unknown until it reaches its value again, or is overdue. A single high reading that no
    other reading confirms does not hold a counter for ever. When it is overdue, the counter continues from the present
    reading, if holding it would hide more than is counted twice.

    Kafka's histograms run since the start, so the mean times the count is the sum, a whole number of milliseconds. But
    the two are read one after the other, and events come in between, so a sum can be a little too high.
    """

    def __init__(self) -> None:
        self._started_at: float | None = None
        self._starts: dict[float | None, dict[str, _Counter]] = {}
        """Counters by name, by the Unix time of the start; the last start that was switched to is last."""
        self._counters: dict[str, _Counter] = {}
        """Counters of the present start by name."""
        self._now_seconds = 0.0
        self._asked_at: float | None = None
        self._reports_start = False

    def begin(self, started_at: float | None, now_seconds: float, asked_at: float | None = None) -> None:
        """
        Begin to read an answer, and switch to the counters of the node's start.

        Args:
            started_at: Unix time of the start; None if the source does not report it.
            now_seconds: Steady time of the collection.
            asked_at: Time at which the answer was asked for. An answer that is shown again has the same time.

        """
        self._now_seconds, self._asked_at, self._reports_start = now_seconds, asked_at, started_at is not None
        if self._starts and started_at in {None, self._started_at}:
            return  # the present start, or taken for it
        if self._started_at is None and started_at not in self._starts:
            counters = self._starts.pop(None, {})  # counters of an unknown start are taken for counters of this start
        else:
            counters = self._starts.pop(started_at, {})
        self._started_at, self._counters = started_at, counters
        self._starts[started_at] = counters  # which makes it the last one
        if len(self._starts) > _MOST_STARTS:
            del self._starts[next(iter(self._starts))]

    def count(self, name: str, count: float) -> float | None:
        """
        Return the value of a counter after the reading ``count``; None if it is unknown.

        A reading that is at least as high as the value becomes the value. After a lower one the value stays if both are
        known to be of the same start, and is unknown otherwise. A counter that is overdue may continue from the lower
        reading.
        """
        counter = self._counters.get(name)
        # if no source has reported a start, a lower reading is a restart
        if counter is None or (self._started_at is None and count < counter.value):
            self._keep(name, _Counter(count, self._now_seconds, self._reports_start, self._asked_at))
            return count
        if count == counter.value and self._asked_at is not None and counter.asked_at == self._asked_at:
            return count  # the same answer once more, which confirms nothing
        if count >= counter.value:
            counter.confirmed = count == counter.value
            counter.earlier_value = counter.value
            counter.value, counter.reached_at, counter.lower = count, self._now_seconds, None
            counter.asked_at = self._asked_at
            counter.of_start |= self._reports_start
            return count
        # the reading is lower: an older answer, a restart, or a reading before it that was wrong
        is_same_start = self._reports_start and counter.of_start
        if counter.lower is None:
            counter.lower = count
        is_overdue = self._now_seconds - counter.reached_at > OVERDUE_SECONDS
        if is_overdue and count > counter.lower:  # the lower readings rise, so they are no repeated old answer
            if not is_same_start:
                self._keep(name, _Counter(count, self._now_seconds, self._reports_start, self._asked_at))
                return count
            # holding the value hides ``value - count``; continuing from the reading counts ``count`` twice
            if not counter.confirmed and counter.value > 2 * count:
                count = max(count, counter.earlier_value)
                self._keep(name, _Counter(count, self._now_seconds, of_start=True, asked_at=self._asked_at))
                return count
        return counter.value if is_same_start else None

    def never_decreasing(self, families: _Numbers) -> _Numbers:
        """Return the numbers of a node with its counters instead of their readings."""
        numbers_by_family = dict(families)
        for family, numbers in families.items():
            if family.type is FamilyType.COUNTER:
                numbers_by_family[family] = {
                    about: None if number is None else self.count(f"{family.name} {about}", number)
                    for about, number in numbers.items()
                }
        return numbers_by_family

    def sum_ms(self, name: str, mean_ms: float, count: float) -> float | None:
        """Return the sum of a histogram in ms, from its mean and its count; None if it is unknown or not finite."""
        product = mean_ms * count
        if not isfinite(product):
            return None
        total, sum_name = float(round(product)), f"{name} sum"
        count_counter, sum_counter = self._counters.get(name), self._counters.get(sum_name)
        if self._started_at is None and count_counter is not None and sum_counter is not None:
            if count < count_counter.value:
                del self._counters[sum_name]  # a restart: the sum begins again, as the count does
            else:
                total = max(total, sum_counter.value)  # a sum that was a little too high is no restart
        self.count(name, count)
        return self.count(sum_name, total)

    def _keep(self, name: str, counter: _Counter) -> None:
        """Replace a counter, and drop the oldest name if there are too many."""
        if name not in self._counters and len(self._counters) >= _MOST_COUNTERS:
            del self._counters[next(iter(self._counters))]
        self._counters[name] = counter


def _disagreements(reader: UsageReader, columns: Columns) -> dict[str, int]:
    """
    Return the number of entities with another utilization than their node itself reports (KIP-1373), by node.

    Nodes that report no utilization are left out. A node computes with the limit that it enforces. So a difference
    shows that it enforces another limit than the one in the Admin API.
    """
    layout = reader.layout
    places = reader.places.get(Meaning.REPORTED_UTILIZATION, np.empty(0))
    rows = np.flatnonzero(places >= 0)
    rows = rows[~layout.limits_unknown[rows]]
    reported, computed = columns.reported_utilization[rows], columns.utilization[rows]
    is_different = np.abs(reported - computed) > _TOLERANCE * np.fmax(1.0, np.abs(reported))
    is_different |= np.isnan(reported) != np.isnan(computed)
    is_different &= ~np.isnan(columns.usage[rows])
    node_numbers = layout.node_numbers[rows]
    return {
        layout.nodes[number]: int(is_different[node_numbers == number].sum()) for number in set(node_numbers.tolist())
    }
