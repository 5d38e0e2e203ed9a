"""
Identification of the broker of a request: by an option, by the path of its file, by its line, or by its address.

Quotas are per broker. If two brokers had one name, a replay would have throttles that no broker imposed, and if one
broker had two names, it would miss throttles. So `Brokers.check` demands a name unless all requests have one address. A
second port may be another broker on the host or another listener of the same broker. A masked address, or the same
address in files of the same time, may stand for any number of brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import ip_address
from itertools import combinations, groupby, pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.pages.words import counted, shown

from ..columns import Column
from ..errors import UnknownBroker
from ..request_log.schema import NamedBy
from ..request_log.times import FEWEST
from ..table import Table

_NAMED: Final = "quotascope.brokers are named"
"""Note of the table of requests that is 1 if its brokers are named."""
_BY_ADDRESS: Final = "quotascope.broker by address"
"""Note of the table of requests with the number (`_number`) of the only address, if its broker is not named."""
_SLACK_MS: Final = 5_000
"""Largest overlap of the times of two files of one log."""
_SECOND_MS: Final = 1_000
_MOST: Final = 8
"""Greatest number of addresses in an error."""


class Place(NamedTuple):
    """Everything that a line and its file show about the broker of a request."""

    named_by: NamedBy
    """Source of `broker`."""
    broker: str
    """Name of the broker, or its address."""
    node: str | None
    """Broker that the line names, also if an option names another one."""
    listener: str
    address: str
    """Host and port of the broker's end of the connection."""
    file: str


@dataclass(slots=True)
class Sighting:
    """Number and times of the requests of a place."""

    requests: int
    first_ms: int
    """Time of the first completion, ms since 1970."""
    last_ms: int
    """Time of the last completion, ms since 1970."""
    precision_ms: int
    """Worst precision of a time."""
    whole_seconds: int
    """Number of requests whose time has no fraction of a second."""

    def add(self, addend: Sighting) -> None:
        """Add other requests of the same place."""
        self.requests += addend.requests
        self.first_ms, self.last_ms = min(self.first_ms, addend.first_ms), max(self.last_ms, addend.last_ms)
        self.precision_ms = max(self.precision_ms, addend.precision_ms)
        self.whole_seconds += addend.whole_seconds


@dataclass(slots=True)
class Brokers:
    """The brokers of some requests, as far as their lines show them."""

    kinds: set[NamedBy] = field(default_factory=set)
    """Sources of the brokers' names, of new and of known requests."""
    sightings: dict[Place, Sighting] = field(default_factory=dict)
    """Sightings of new requests by place."""

    @classmethod
    def of(cls, rows: pa.Table, fresh: pa.Table) -> Brokers:
        """Return the brokers of rows of `PARSED_REQUESTS`; `fresh` has the new ones of them, for sightings."""
        kinds = {NamedBy(kind) for kind in pc.unique(rows["named_by"]).to_pylist() if kind is not None}
        if not len(fresh):
            return cls(kinds)
        # the address of a row, by its distinct connections and then by their distinct addresses
        connections: Column = fresh["connection"].combine_chunks().dictionary_encode()
        addresses = [connection.partition("-")[0] for connection in connections.dictionary.to_pylist()]
        distinct = pa.array(addresses, pa.string()).dictionary_encode()
        address: Column = distinct.dictionary.take(distinct.indices.take(connections.indices))
        names = ("named_by", "broker", "node", "listener", "file", "completed", "time_precision_ms")
        columns: dict[str, Column] = {name: fresh[name] for name in names}
        columns["address"] = address
        second = pc.multiply(pc.divide(fresh["completed"], _SECOND_MS), _SECOND_MS)
        columns["whole"] = pc.equal(second, fresh["completed"]).cast(pa.int64())
        sums = (
            pa.table(columns)
            .group_by([*Place._fields], use_threads=False)
            .aggregate([
                ("completed", "count"), ("completed", "min"), ("completed", "max"), ("time_precision_ms", "max"),
                ("whole", "sum"),
            ])
        )  # fmt: skip
        sightings = {
            Place(NamedBy(row["named_by"]), *(row[name] for name in Place._fields[1:])): Sighting(
                row["completed_count"],
                row["completed_min"],
                row["completed_max"],
                row["time_precision_ms_max"],
                row["whole_sum"],
            )
            for row in sums.to_pylist()
        }
        return cls(kinds, sightings)

    def add(self, brokers: Brokers) -> None:
        """Add the brokers of other requests."""
        self.kinds |= brokers.kinds
        for place, sighting in brokers.sightings.items():
            if place in self.sightings:
                self.sightings[place].add(sighting)
            else:
                self.sightings[place] = Sighting(
                    sighting.requests,
                    sighting.first_ms,
                    sighting.last_ms,
                    sighting.precision_ms,
                    sighting.whole_seconds,
                )

    def check(self, table: Table) -> None:
        """
        Raise `UnknownBroker` if the broker of any request is not certain.

        Args:
            table: table of requests, in which brokers must be named in the same way.

        """
        has_names = bool(self.kinds - {NamedBy.ADDRESS})
        unnamed = {place: sighting for place, sighting in self.sightings.items() if place.named_by is NamedBy.ADDRESS}
        if NamedBy.ADDRESS in self.kinds:
            if has_names:
                raise UnknownBroker(
                    "some lines name their broker and others do not", _listed(self.sightings.items()), self._advice()
                )
            self._check_addresses(unnamed)
            if table.last_epoch(_NAMED) is not None:
                reason = f"the brokers of the requests in {table.storage.uri} are named, and that of these is not"
                raise UnknownBroker(reason, _listed(unnamed.items()), self._advice())
        self._check_address_in(table, unnamed, has_names=has_names)
        self._check_named()

    def _check_address_in(self, table: Table, unnamed: dict[Place, Sighting], *, has_names: bool) -> None:
        """Refuse another broker than that of a table whose only broker is known by its address."""
        known_number = table.last_epoch(_BY_ADDRESS)
        if known_number is None:
            return
        if has_names:
            raise UnknownBroker(
                (
                    f"the requests in {table.storage.uri} are of a broker that has no name there but its address, "
                    "and these are of a named one"
                ),
                (),
                "ingest all logs into another folder, each with the name of its broker",
            )
        if any(_number(place.address) != known_number for place in unnamed):
            raise UnknownBroker(
                (
                    f"the requests in {table.storage.uri} are of another address, which may be the same broker or "
                    "another one"
                ),
                _listed(unnamed.items()),
                "ingest all logs into another folder, each with --broker NAME",
            )

    def _check_addresses(self, unnamed: dict[Place, Sighting]) -> None:
        """Refuse several addresses, and an address that may stand for several brokers."""
        addresses = {place.address for place in unnamed}
        masked = sorted(address for address in addresses if not _is_address(address))
        if masked:
            text = shown(masked[0], 100) or "an empty text"
            reason = f"{text} is no address of a broker, but a text that may stand for any"
            raise UnknownBroker(reason, _listed(unnamed.items()), self._advice())
        if len(addresses) > 1:
            reason = (
                "the lines name no broker and have several addresses, which may be brokers or listeners of one broker"
            )
            raise UnknownBroker(reason, _listed(unnamed.items()), self._advice())
        folders = {place.file.rpartition("/")[0] for place in unnamed if "/" in place.file}
        if len(folders) > 1 and not all(map(_is_of_one_host, addresses)):
            reason = (
                f"the address {shown(next(iter(addresses)), 100)} is the same on any host, so that the files may be "
                "of several brokers"
            )
            raise UnknownBroker(reason, _listed(unnamed.items()), self._advice())
        spans: dict[str, tuple[int, int]] = {}
        for place, sighting in unnamed.items():
            if "/" in place.file:  # partitions of a topic are no files: they may share the lines of a broker
                first_ms, last_ms = spans.get(place.file, (sighting.first_ms, sighting.last_ms))
                spans[place.file] = min(first_ms, sighting.first_ms), max(last_ms, sighting.last_ms)
        files_in_order = sorted(spans, key=spans.__getitem__)
        for earlier, later in pairwise(files_in_order):
            if spans[later][0] < spans[earlier][1] - _SLACK_MS:
                reason = (
                    f"{shown(earlier, 200)} and {shown(later, 200)} are of the same time and the same address, so "
                    "that they may be of two brokers"
                )
                raise UnknownBroker(reason, _listed(unnamed.items()), self._advice())

    def _check_named(self) -> None:
        """Refuse a name that stands for two brokers: two nodes, or a listener with two ports at once."""
        by_name = sorted(self.sightings.items(), key=lambda entry: (entry[0].broker, entry[0].listener))
        for broker, group in groupby(by_name, key=lambda entry: entry[0].broker):
            sightings = list(group)
            if not broker:
                raise UnknownBroker(
                    "some lines have an empty name for their broker", _listed(sightings), self._advice()
                )
            nodes = sorted({place.node for place, _ in sightings if place.node is not None})
            if len(nodes) > 1:
                reason = f"the lines of broker {shown(broker)} are of the nodes {', '.join(map(shown, nodes[:_MOST]))}"
                raise UnknownBroker(reason, _listed(sightings), self._advice())
            for listener, listener_group in groupby(sightings, key=lambda entry: entry[0].listener):
                for (place, sighting), (other_place, other) in combinations([*listener_group][: _MOST * 4], 2):
                    is_at_once = sighting.first_ms <= other.last_ms and other.first_ms <= sighting.last_ms
                    if is_at_once and _port(place.address) != _port(other_place.address):
                        reason = (
                            f"listener {shown(listener)} of broker {shown(broker)} has the addresses "
                            f"{shown(place.address)} and {shown(other_place.address)} "
                            "at the same time, so that the name stands for two brokers"
                        )
                        raise UnknownBroker(reason, _listed(sightings), self._advice())

    def notes(self) -> dict[str, int]:
        """Return the notes for a commit of these requests, by which later runs are checked."""
        notes: dict[str, int] = {}
        for place in self.sightings:
            if place.named_by is NamedBy.ADDRESS:
                notes[_BY_ADDRESS] = _number(place.address)
        if self.kinds - {NamedBy.ADDRESS}:
            notes[_NAMED] = 1
        return notes

    def coarse(self) -> dict[str, tuple[int, int]]:
        """
        Return the worst precision in ms, and the number of requests with coarse times, by broker.

        Brokers whose times are in milliseconds are left out.
        """
        coarse: dict[str, tuple[int, int]] = {}
        for broker, sightings in self._by_broker():
            requests = sum(sighting.requests for sighting in sightings)
            whole_seconds = sum(sighting.whole_seconds for sighting in sightings)
            precision_ms = max(sighting.precision_ms for sighting in sightings)
            if requests >= FEWEST and whole_seconds == requests:
                coarse[broker] = _SECOND_MS, requests
            elif precision_ms > 1:
                coarse_requests = sum(sighting.requests for sighting in sightings if sighting.precision_ms > 1)
                coarse[broker] = precision_ms, coarse_requests
        return coarse

    def _by_broker(self) -> Iterator[tuple[str, list[Sighting]]]:
        """Yield the names of brokers, sorted, each with its sightings."""
        by_broker: dict[str, list[Sighting]] = {}
        for place, sighting in self.sightings.items():
            by_broker.setdefault(place.broker, []).append(sighting)
        yield from sorted(by_broker.items())

    def _advice(self) -> str:
        """Return the advice for an error, with a pattern that fits the files if there is one."""
        pattern = _pattern({place.file for place in self.sightings})
        example = f", such as --broker-pattern '{pattern}'" if pattern else ""
        return (
            "pass --broker NAME if all are of one broker, else --broker-pattern REGEX for the broker's name in the "
            f"file's path{example}, or ingest the logs of each broker by themselves"
        )


def _listed(sightings: Iterable[tuple[Place, Sighting]]) -> list[str]:
    """Return addresses with their listeners and files for an error, the ones with most requests first."""
    sums: dict[tuple[str, str, str], int] = {}
    for place, sighting in sightings:
        key = place.address, place.listener, place.file
        sums[key] = sums.get(key, 0) + sighting.requests
    listed = [
        f"{shown(address, 100)} (listener {shown(listener)}, {counted(requests, 'request')}, {shown(file, 200)})"
        for (address, listener, file), requests in sorted(sums.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    if len(listed) > _MOST:
        return [*listed[:_MOST], f"{len(listed) - _MOST:,} more"]
    return listed


def _is_address(address: str) -> bool:
    """Return whether a text is a host and a port; the unspecified address (0.0.0.0) is none, but a mask."""
    host, colon, port = address.rpartition(":")
    try:
        ip = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return bool(colon) and port.isdecimal() and not ip.is_unspecified


def _is_of_one_host(address: str) -> bool:
    """Return whether only one host can have an address: it is neither loopback nor link-local."""
    ip = ip_address(address.rpartition(":")[0].strip("[]").partition("%")[0])
    return not (ip.is_loopback or ip.is_link_local)


def _port(address: str) -> str:
    """Return the port of an address."""
    return address.rpartition(":")[2]


def _number(address: str) -> int:
    """Return a hash of an address, as a commit can keep only numbers."""
    return int.from_bytes(blake2b(address.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "little")


def _pattern(files: Iterable[str]) -> str | None:
    """
    Return a pattern for the first folder or file in which paths differ.

    Return None if the names there differ in more than a number.
    """
    paths = [file.split("/") for file in sorted(files)]
    if len({len(path) for path in paths}) != 1:
        return None
    for place, names in enumerate(zip(*paths, strict=True)):
        if len(set(names)) > 1:
            matches: list[Any] = [re.fullmatch(r"(\D*)(\d+)(\D*)", name) for name in names]
            # the text around the number must be the same in all names
            if not all(matches) or len({(match[1], match[3]) for match in matches}) > 1:
                return None
            is_folder = place < len(paths[0]) - 1
            end = "/" if is_folder else "$"
            return f"/{re.escape(matches[0][1])}([0-9]+){re.escape(matches[0][3])}{end}"
    return None
