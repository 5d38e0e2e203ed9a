"""
Losses of a history: requests that its logs lack, lines that could not be read, and times in whole seconds.

Clients number the requests of a connection one by one (correlation ids), and a broker logs all of them. So a number
between two logged ones belongs to a request that the log lacks. Java clients number the requests of all their
connections together, so their connections are counted together. Their losses are undecided while the log of a node that
Metadata names is missing.

Losses are lower bounds: requests that were lost before the first or after the last one of a connection leave no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, product
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import spelled
from quotascope.pages.words import counted, percent, shown

from .errors import BrokersMixed, NoTable
from .history.connections import CONNECTIONS
from .releases import NODES
from .request_log.schema import NOT_LOST, QUARANTINE
from .request_log.times import FEWEST
from .table import Table
from .topics import MINUTE_MS

MOST_MISSING: Final = 0.05
"""Largest missing share of an entity's requests with which its limit becomes a command."""
SHOWN: Final = 0.0005
"""Least missing share that is reported."""
_MOST_CLIENTS: Final = 3
_SECOND_MS: Final = 1_000
_UNITS: Final = {10: "10 ms", 100: "100 ms", 1_000: "whole seconds"}
_UNLESS: Final = (
    ", unless Java clients among them use brokers whose logs are not here, too, to which they count on: no answer "
    "to Metadata says how many nodes there are"
)
_AGAIN: Final = "ingest the logs again into another folder, with --broker or --broker-pattern for each broker"
_FEW: Final = 20
"""Least number of correlation ids of a broker for a share that is assumed for its clients without numbers."""
_WRAPPED: Final = 1 << 30
"""Distance between two successive numbers from which on the client must have started to count again."""

Client = tuple[str, str, str]
"""Broker, user and client id."""


@dataclass(slots=True)
class Steps:
    """Number of steps from one correlation id to the next."""

    all: int = 0
    seen: int = 0
    """Number of steps that lead to a request which the log has."""

    def add(self, first_id: int, last_id: int, requests: int) -> None:
        """Count the steps from the first to the last id, between which, both included, `requests` are logged."""
        steps = last_id - first_id
        if steps < _WRAPPED:
            self.all += steps
            self.seen += min(steps, requests - 1)

    def merge(self, steps: Steps) -> None:
        """Add other steps."""
        self.all += steps.all
        self.seen += steps.seen

    @property
    def missing(self) -> float | None:
        """Share of requests that the log lacks; None without any step."""
        return 1 - self.seen / self.all if self.all else None


def may_lack(share: float | None) -> bool:
    """Return whether figures of an entity may be too low, by the missing share of its requests (None: unknown)."""
    return share is None or share >= SHOWN


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Losses of a history, as far as the log shows them."""

    clients: Mapping[Client, Steps] = field(default_factory=dict)
    """Steps by client, if a missing number is a missing request."""
    undecided: Mapping[Client, Steps] = field(default_factory=dict)
    """Steps by client, if a missing number may belong to a request to a node whose log is not here."""
    java: AbstractSet[Client] = frozenset()
    """Clients that number their requests to all brokers together, or may do so, by their software."""
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Number of request lines that could not be read, by broker; the empty broker is unknown."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Number of requests by broker."""
    precision_ms: Mapping[str, int] = field(default_factory=dict)
    """Worst precision of times, by broker whose times are coarser than milliseconds."""
    nodes: int = 0
    """Greatest number of nodes in a response to Metadata."""
    has_numbers: bool = True
    """True if the history has correlation ids."""

    def missing(self, user: str | None = None, client_id: str | None = None, broker: str | None = None) -> float:
        """
        Return the missing share of an entity's requests on the broker with the largest one; 0 without visible losses.

        For a client without numbers of its own, the share of its broker is used.
        """
        return max((self._missing_on(name, user, client_id) for name in self._brokers(broker)), default=0.0)

    def share(self, user: str | None = None, client_id: str | None = None, broker: str | None = None) -> float | None:
        """
        Return `missing`, or None if it is unknown.

        It is unknown if no loss is visible, and correlation ids are missing or undecided.
        """
        share = self.missing(user, client_id, broker)
        if share >= SHOWN:
            return share
        brokers = self._brokers(broker)
        is_undecided = any(
            place in brokers and user in (None, owner) and client_id in (None, name) and steps.all > steps.seen
            for (place, owner, name), steps in self.undecided.items()
        )
        return share if self.has_numbers and not is_undecided else None

    def _brokers(self, broker: str | None) -> Sequence[str]:
        """Return a broker as a list, or all brokers for None."""
        return sorted(self.requests) if broker is None else (broker,)

    def _missing_on(self, broker: str, user: str | None, client_id: str | None) -> float:
        """
        Return the missing share of an entity's requests on one broker.

        It is the larger of the share by correlation ids, the broker's where the entity has none, and the share of
        unreadable lines.
        """
        client_steps = self._sums.get((broker, user, client_id), Steps())
        broker_steps = self._sums.get((broker, None, None), Steps())
        unreadable = self.unreadable.get(broker, 0) + self.unreadable.get("", 0)
        readable = self.requests.get(broker, 0)
        unread_share = unreadable / (unreadable + readable) if unreadable else 0.0
        missing_share = client_steps.missing
        if missing_share is None and broker_steps.all >= _FEW:
            missing_share = broker_steps.missing
        return max(missing_share or 0.0, unread_share)

    @cached_property
    def _sums(self) -> dict[tuple[str, str | None, str | None], Steps]:
        """Steps by broker, user and client id; None stands for the sum over all users, or client ids."""
        sums: dict[tuple[str, str | None, str | None], Steps] = {}
        for (broker, user, client_id), steps in self.clients.items():
            for names in product((user, None), (client_id, None)):
                sums.setdefault((broker, *names), Steps()).merge(steps)
        return sums

    def incomplete(self, user: str | None, client_id: str | None, broker: str | None = None) -> bool:
        """Return whether figures of an entity are too low, because losses are visible."""
        return self.missing(user, client_id, broker) >= SHOWN

    def too_many(self, user: str | None, client_id: str | None) -> bool:
        """Return whether too many of an entity's requests are missing for a command."""
        return self.missing(user, client_id) > MOST_MISSING

    @property
    def coarse(self) -> bool:
        """True if times of some requests are coarser than milliseconds."""
        return bool(self.precision_ms)

    @property
    def notes(self) -> Sequence[str]:
        """Losses, one sentence or two each."""
        return [*self.missing_notes(), *self._unreadable_notes(), *self._precision_notes()]

    def missing_notes(self) -> Iterator[str]:
        """Yield notes about losses that correlation ids show, or that stay undecided."""
        yield from self._missing()
        yield from self._undecided()

    def _missing(self) -> Iterator[str]:
        """Yield a note for each broker whose log lacks requests, and one if that is unknown."""
        if not self.has_numbers:
            yield (
                "How many requests the logs lack, and how exact their times are, is unknown: the history was made "
                "without their numbers."
            )
        for broker in sorted(self.requests):
            steps_of_broker = Steps()
            shares = []
            for (place, user, client_id), steps in self.clients.items():
                if place == broker:
                    steps_of_broker.merge(steps)
                    if (steps.missing or 0.0) >= SHOWN:
                        shares.append((steps.missing or 0.0, spelled(user, client_id)))
            if not steps_of_broker.all and not self.undecided and self.requests[broker] >= _FEW:
                yield f"How many requests the log of broker {shown(broker)} lacks is unknown: no connection has two."
            if steps_of_broker.all and shares:
                largest = sorted(shares, key=lambda share_and_name: (-share_and_name[0], share_and_name[1]))
                largest_text = "; ".join(f"{name} {percent(share)}" for share, name in largest[:_MOST_CLIENTS])
                other_clients = (
                    f"; {counted(len(largest) - _MOST_CLIENTS, 'other client')}" if len(largest) > _MOST_CLIENTS else ""
                )
                unless = _UNLESS if not self.nodes and self._numbers_of_java(broker) else ""
                yield (
                    f"The log of broker {shown(broker)} lacks at least {percent(steps_of_broker.missing or 0.0)} of "
                    f"the requests, by their correlation ids ({largest_text}{other_clients}){unless}: "
                    "figures are of the requests that it has, so usage, throttles and limits are too low."
                )

    def _numbers_of_java(self, broker: str) -> bool:
        """Return whether a client with visible losses on a broker is among `java`."""
        return any(
            client[0] == broker and (steps.missing or 0.0) >= SHOWN and client in self.java
            for client, steps in self.clients.items()
        )

    def _undecided(self) -> Iterator[str]:
        """Yield a note if the log cannot show what some clients' missing numbers are."""
        clients = [(1 - steps.seen / steps.all, key) for key, steps in self.undecided.items() if steps.all > steps.seen]
        if clients:
            share, (_, user, client_id) = max(clients)
            yield (
                f"Of {counted(len(clients), 'Java client')} it is unknown how much is missing, up to {percent(share)} "
                f"({spelled(user, client_id)}): they number the requests to all brokers together, and of the "
                f"{self.nodes} nodes of the cluster, the logs of {len(self.requests)} are here."
            )

    def _unreadable_notes(self) -> Iterator[str]:
        """Yield a note for each broker with requests that could not be read."""
        for broker, lines in sorted(self.unreadable.items()):
            of_broker = f" of broker {shown(broker)}" if broker else ""
            yield (
                f"{counted(lines, 'request')}{of_broker} could not be read and {'is' if lines == 1 else 'are'} in "
                "no figure: see the table quarantine."
            )

    def _precision_notes(self) -> Iterator[str]:
        """Yield a note for each broker whose times are coarser than milliseconds."""
        for broker, precision in sorted(self.precision_ms.items()):
            yield (
                f"The log of broker {shown(broker)} has times of {_UNITS.get(precision, f'{precision} ms')} only: "
                "the order and the distance of requests within that are unknown, so throttles, "
                "queue times and limits are only a hint. Log with %d{yyyy-MM-dd HH:mm:ss,SSS}."
            )

    def values(self) -> dict[str, Any]:
        """Return the losses for JSON."""
        return {
            "known": self.has_numbers,
            "clients": [
                {"broker": broker, "user": user, "client_id": client_id, "missing_share": steps.missing}
                for (broker, user, client_id), steps in sorted(self.clients.items())
                if (steps.missing or 0.0) >= SHOWN
            ],
            "undecided_clients": [
                {"broker": broker, "user": user, "client_id": client_id, "missing_share_at_most": steps.missing}
                for (broker, user, client_id), steps in sorted(self.undecided.items())
                if steps.all > steps.seen
            ],
            "brokers": [
                {
                    "broker": broker,
                    "missing_share": self.share(broker=broker),
                    "time_precision_ms": self.precision_ms.get(broker, 1),
                }
                for broker in sorted(self.requests)
            ],
            "unreadable_requests": sum(self.unreadable.values()),
            "notes": list(self.notes),
        }


def losses_of(folder: str, span_ms: tuple[int, int] | None = None) -> Losses:
    """
    Return the losses of a history.

    Args:
        folder: folder of the history, as `quotascope ingest` has made it.
        span_ms: period of the connections. Unreadable lines are counted without a period, as they have no times.

    Raises:
        TableError: a table cannot be read.
        BrokersMixed: the name of a broker stands for two brokers.

    """
    base = folder.rstrip("/")
    unreadable: dict[str, int] = {}
    with suppress(NoTable):
        quarantine = Table.open(f"{base}/quarantine", schema=QUARANTINE)
        for batch in quarantine.batches(quarantine.files(), ("reason", "broker", "lines")):
            for row in batch.to_pylist():
                if row["reason"] not in NOT_LOST:
                    broker = row["broker"] or ""
                    unreadable[broker] = unreadable.get(broker, 0) + (row["lines"] or 1)
    nodes = 0
    with suppress(NoTable):
        nodes = Table.open(f"{base}/requests").last_epoch(NODES) or 0
    try:
        table = Table.open(f"{base}/connections", schema=CONNECTIONS)
    except NoTable:
        return Losses(unreadable=unreadable, has_numbers=False)
    files = table.files()
    if span_ms is not None:
        begin, end = span_ms[0] - MINUTE_MS + 1, span_ms[1]  # rows of minutes that overlap the period
        files = tuple(file for file in files if file.overlaps(begin, end))
    rows = pa.Table.from_batches(list(table.batches(files)), CONNECTIONS)
    if span_ms is not None:
        rows = rows.filter((pc.field("start") >= begin) & (pc.field("start") < end))
    check_brokers(rows, folder)
    return losses_in(rows, unreadable, nodes)


def check_brokers(rows: pa.Table, folder: str) -> None:
    """
    Raise `BrokersMixed` if a broker's name in rows of `CONNECTIONS` stands for two brokers.

    Such a name is empty, or has a listener with two ports in the same minute, of which a process has one.
    """
    names = rows.group_by(["broker"]).aggregate([])["broker"].to_pylist()
    if any(not name for name in names):
        raise BrokersMixed(f"{folder}: some requests are of a broker without a name; quotas are per broker: {_AGAIN}")
    places = rows.group_by(["broker", "listener", "start", "address"], use_threads=False).aggregate([])
    addresses: dict[tuple[str, str, int], str] = {}
    for row in places.to_pylist():
        key = row["broker"], row["listener"], row["start"]
        address = addresses.setdefault(key, row["address"])
        if address.rpartition(":")[2] != row["address"].rpartition(":")[2] and ":" in address and ":" in row["address"]:
            raise BrokersMixed(
                f"{folder}: listener {shown(row['listener'])} of broker {shown(row['broker'])} has the addresses "
                f"{shown(address)} and {shown(row['address'])} in the same minute, "
                f"so that the name stands for two brokers; quotas are per broker: {_AGAIN}"
            )


def losses_in(rows: pa.Table, unreadable: Mapping[str, int] | None = None, nodes: int = 0) -> Losses:
    """Return the losses in rows of `CONNECTIONS`; `nodes` is the number of nodes of the cluster, 0 if it is unknown."""
    merged = (
        rows.group_by(["broker", "user", "client_id", "connection", "peer", "software", "start"], use_threads=False)
        .aggregate([
            ("requests", "sum"), ("first_id", "min"), ("last_id", "max"), ("whole_seconds", "sum"),
            ("precision_ms", "max"),
        ])
        .sort_by([(name, "ascending") for name in ("broker", "connection", "start", "first_id_min")])
    )  # fmt: skip
    by_connection: dict[tuple[str, int], list[dict[str, Any]]] = {}
    requests: dict[str, int] = {}
    whole_seconds: dict[str, int] = {}
    precision: dict[str, int] = {}
    for row in merged.to_pylist():
        broker = row["broker"]
        by_connection.setdefault((broker, row["connection"]), []).append(row)
        requests[broker] = requests.get(broker, 0) + row["requests_sum"]
        whole_seconds[broker] = whole_seconds.get(broker, 0) + row["whole_seconds_sum"]
        precision[broker] = max(precision.get(broker, 1), row["precision_ms_max"])
    coarse = {
        broker: _SECOND_MS if whole_seconds[broker] == requests[broker] >= FEWEST else precision[broker]
        for broker in requests
        if precision[broker] > 1 or whole_seconds[broker] == requests[broker] >= FEWEST
    }
    clients: dict[Client, Steps] = {}
    undecided: dict[Client, Steps] = {}
    java: dict[tuple[str, str, str], list[list[dict[str, Any]]]] = {}
    for connection in by_connection.values():
        software = next((row["software"] for row in connection if row["software"] != "unknown"), "unknown")
        if software == "unknown" or "java" in software.lower():
            last_row = connection[-1]
            java.setdefault((last_row["peer"], last_row["user"], last_row["client_id"]), []).append(connection)
        else:
            _count_connection(connection, clients)
    # with the logs of all nodes, a number that is missing is a request that a log lacks
    counted_steps = undecided if nodes > len(requests) else clients
    for connections in java.values():
        if len(connections) == 1:
            _count_connection(connections[0], counted_steps)
        else:
            _count_together(connections, counted_steps)
    return Losses(
        clients=clients,
        undecided=undecided,
        java={_client(row) for connections in java.values() for rows in connections for row in rows},
        unreadable=unreadable or {},
        requests=requests,
        precision_ms=coarse,
        nodes=nodes,
    )


def _client(row: Mapping[str, Any]) -> Client:
    """Return the client of a row of `CONNECTIONS`."""
    return row["broker"], row["user"], row["client_id"]


def _count_connection(rows: Sequence[Mapping[str, Any]], clients: dict[Client, Steps]) -> None:
    """
    Add the steps of one connection, whose rows are in order of time, to its client's.

    Where its numbers start again, a new range of numbers begins, and nothing between the ranges is missing.
    """
    steps = clients.setdefault(_client(rows[-1]), Steps())
    first_id = last_id = requests = 0
    for _, rows_of_minute in groupby(rows, key=lambda row: row["start"]):
        minute = list(rows_of_minute)
        lowest, highest = min(row["first_id_min"] for row in minute), max(row["last_id_max"] for row in minute)
        count = sum(row["requests_sum"] for row in minute)
        if requests and last_id < lowest < last_id + _WRAPPED:
            last_id, requests = highest, requests + count
            continue
        if requests:
            steps.add(first_id, last_id, requests)
        first_id, last_id, requests = lowest, highest, count
    steps.add(first_id, last_id, requests)


def _count_together(connections: Sequence[Sequence[Mapping[str, Any]]], clients: dict[Client, Steps]) -> None:
    """
    Add the steps of connections of one host and client id, minute by minute.

    Connections whose ranges of numbers overlap in a minute belong to one client.
    """
    by_minute: dict[int, list[Mapping[str, Any]]] = {}
    for connection in connections:
        for row in connection:
            by_minute.setdefault(row["start"], []).append(row)
    for rows in by_minute.values():
        together: list[Mapping[str, Any]] = []
        last_id = -1
        for row in sorted(rows, key=lambda row: row["first_id_min"]):
            if row["first_id_min"] > last_id:
                _count_client(together, last_id, clients)
                together = []
            together.append(row)
            last_id = max(last_id, row["last_id_max"])
        _count_client(together, last_id, clients)


def _count_client(together: Sequence[Mapping[str, Any]], last_id: int, clients: dict[Client, Steps]) -> None:
    """Add the steps of all connections of a client in a minute to the client on each broker that it used."""
    if together:
        sums = Steps()
        sums.add(together[0]["first_id_min"], last_id, sum(row["requests_sum"] for row in together))
        for client in {_client(row) for row in together}:
            clients.setdefault(client, Steps()).merge(sums)
