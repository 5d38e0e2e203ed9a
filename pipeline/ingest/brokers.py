"""
The broker of each request: named by an option, by its file's path or by its line, else its one address.

A name is required wherever this is not certain. Quotas are per broker. Two brokers under one name would be throttled
where none was, and one broker under two names would not be where it was. So an address stands for a broker only while
it is the only one: an address with another port may be another broker of the host or another listener of the same
broker, and an address that is masked, or of files of the same time, may be of any number of brokers.
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
_BY_ADDRESS: Final = "quotascope.broker by address"
"""Names of two notes of the table of requests: one marks names of brokers by 1, the other numbers the only address."""
_SLACK_MS: Final = 5_000
"""Greatest overlap of the times of two files of one log."""
_SECOND_MS: Final = 1_000
_MOST: Final = 8
"""Greatest number of addresses in an error."""


class Place(NamedTuple):
    """Facts about a request's broker in its line and file."""

    named_by: NamedBy
    broker: str
    node: str | None
    """Broker that the line names, whatever name was given."""
    listener: str
    address: str
    """Host and port of the broker's end of the connection."""
    file: str


@dataclass(slots=True)
class Sighting:
    """Number and times of requests of a place."""

    requests: int
    first_ms: int
    last_ms: int
    """Time of the last completion, ms since 1970, as `first_ms` is that of the first."""
    precision_ms: int
    """Worst precision of their times."""
    whole_seconds: int
    """Number of requests with a time without a fraction of a second."""

    def add(self, addend: Sighting) -> None:
        """Add other requests of the same place."""
        self.requests += addend.requests
        self.first_ms, self.last_ms = min(self.first_ms, addend.first_ms), max(self.last_ms, addend.last_ms)
        self.precision_ms = max(self.precision_ms, addend.precision_ms)
        self.whole_seconds += addend.whole_seconds


@dataclass(slots=True)
class Brokers:
    """The brokers of some requests, as far as their lines show."""

    kinds: set[NamedBy] = field(default_factory=set)
    """Sources of the names of all requests' brokers, known requests too."""
    sightings: dict[Place, Sighting] = field(default_factory=dict)
    """New requests by place."""

    @classmethod
    def of(cls, rows: pa.Table, fresh: pa.Table) -> Brokers:
        """Return the brokers of rows of `PARSED_REQUESTS`, and the sightings of the new rows."""
        kinds = {NamedBy(kind) for kind in pc.unique(rows["named_by"]).to_pylist() if kind is not None}
        if not len(fresh):
            return cls(kinds)
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
        Raise `UnknownBroker` if it is not certain of which broker a request is.

        Args:
            table: the table of requests, whose rows must have names of the same kinds.

        """
        kinds_of_names = self.kinds - {NamedBy.ADDRESS}
        unnamed = {place: sighting for place, sighting in self.sightings.items() if place.named_by is NamedBy.ADDRESS}
        if NamedBy.ADDRESS in self.kinds:
            if kinds_of_names:
                raise UnknownBroker(
                    "some lines name their broker and others do not", _listed(self.sightings.items()), self._advice()
                )
            self._check_addresses(unnamed)
            if table.last_epoch(_NAMED) is not None:
                reason = f"the brokers of the requests in {table.storage.uri} are named, and that of these is not"
                raise UnknownBroker(reason, _listed(unnamed.items()), self._advice())
        known_number = table.last_epoch(_BY_ADDRESS)
        if known_number is not None and self.kinds:
            if kinds_of_names:
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
        self._check_named()

    def _check_addresses(self, unnamed: dict[Place, Sighting]) -> None:
        """Refuse more than one address, and one that may be of several brokers."""
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
        spans: dict[str, list[int]] = {}
        for place, sighting in unnamed.items():
            if "/" in place.file:  # partitions of a topic share a broker's lines, so they do not count
                span = spans.setdefault(place.file, [sighting.first_ms, sighting.last_ms])
                span[:] = min(span[0], sighting.first_ms), max(span[1], sighting.last_ms)
        in_order = sorted(spans.items(), key=lambda file_and_span: file_and_span[1])
        for (earlier, (_, end_ms)), (later, (begin_ms, _)) in pairwise(in_order):
            if begin_ms < end_ms - _SLACK_MS:
                reason = (
                    f"{shown(earlier, 200)} and {shown(later, 200)} are of the same time and the same address, so "
                    "that they may be of two brokers"
                )
                raise UnknownBroker(reason, _listed(unnamed.items()), self._advice())

    def _check_named(self) -> None:
        """Refuse a name that stands for two brokers: two nodes, or a listener with two ports at once."""
        places = sorted(self.sightings.items(), key=lambda entry: (entry[0].broker, entry[0].listener))
        for broker, of_broker in groupby(places, key=lambda entry: entry[0].broker):
            sightings = list(of_broker)
            if not broker:
                raise UnknownBroker(
                    "some lines have an empty name for their broker", _listed(sightings), self._advice()
                )
            nodes = sorted({place.node for place, _ in sightings if place.node is not None})
            if len(nodes) > 1:
                reason = f"the lines of broker {shown(broker)} are of the nodes {', '.join(map(shown, nodes[:_MOST]))}"
                raise UnknownBroker(reason, _listed(sightings), self._advice())
            for listener, of_listener in groupby(sightings, key=lambda entry: entry[0].listener):
                for (place, span), (later_place, later_span) in combinations(list(of_listener)[: _MOST * 4], 2):
                    if (
                        _port(place.address) != _port(later_place.address)
                        and span.first_ms <= later_span.last_ms
                        and later_span.first_ms <= span.last_ms
                    ):
                        reason = (
                            f"listener {shown(listener)} of broker {shown(broker)} has the addresses "
                            f"{shown(place.address)} and {shown(later_place.address)} "
                            "at the same time, so that the name stands for two brokers"
                        )
                        raise UnknownBroker(reason, _listed(sightings), self._advice())

    def notes(self) -> dict[str, int]:
        """Return the notes that a commit of these requests keeps."""
        notes: dict[str, int] = {}
        for place in self.sightings:
            if place.named_by is NamedBy.ADDRESS:
                notes[_BY_ADDRESS] = _number(place.address)
        if self.kinds - {NamedBy.ADDRESS}:
            notes[_NAMED] = 1
        return notes

    def coarse(self) -> dict[str, tuple[int, int]]:
        """
        Return the worst precision in ms and the number of such requests by broker.

        Brokers whose times are in milliseconds are left out.
        """
        coarse: dict[str, tuple[int, int]] = {}
        for broker, sightings in self._by_broker():
            requests, whole = (
                sum(getattr(sighting, name) for sighting in sightings) for name in ("requests", "whole_seconds")
            )
            precision = max(sighting.precision_ms for sighting in sightings)
            if whole == requests >= FEWEST:
                coarse[broker] = _SECOND_MS, requests
            elif precision > 1:
                coarse[broker] = (
                    precision,
                    sum(sighting.requests for sighting in sightings if sighting.precision_ms > 1),
                )
        return coarse

    def _by_broker(self) -> Iterator[tuple[str, list[Sighting]]]:
        by_broker: dict[str, list[Sighting]] = {}
        for place, sighting in self.sightings.items():
            by_broker.setdefault(place.broker, []).append(sighting)
        yield from sorted(by_broker.items())

    def _advice(self) -> str:
        pattern = _pattern({place.file for place in self.sightings})
        example = f", such as --broker-pattern '{pattern}'" if pattern else ""
        return (
            "pass --broker NAME if all are of one broker, else --broker-pattern REGEX for the broker's name in the "
            f"file's path{example}, or ingest the logs of each broker by themselves"
        )


def _listed(sightings: Iterable[tuple[Place, Sighting]]) -> list[str]:
    """Return the addresses with their listeners and files, the most requests first."""
    sums: dict[tuple[str, str, str], int] = {}
    for place, sighting in sightings:
        key = place.address, place.listener, place.file
        sums[key] = sums.get(key, 0) + sighting.requests
    listed = [
        f"{shown(address, 100)} (listener {shown(listener)}, {counted(requests, 'request')}, {shown(file, 200)})"
        for (address, listener, file), requests in sorted(sums.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    return listed[:_MOST] + ([f"{len(listed) - _MOST:,} more"] if len(listed) > _MOST else [])


def _is_address(address: str) -> bool:
    """Return whether a text is the address of a broker; the unspecified address (0.0.0.0) is a mask."""
    host, colon, port = address.rpartition(":")
    try:
        ip = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return bool(colon) and port.isdecimal() and not ip.is_unspecified


def _is_of_one_host(address: str) -> bool:
    """Return whether an address is neither loopback nor link-local."""
    ip = ip_address(address.rpartition(":")[0].strip("[]").partition("%")[0])
    return not (ip.is_loopback or ip.is_link_local)


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _number(address: str) -> int:
    """Return a number of an address that a commit can keep."""
    return int.from_bytes(blake2b(address.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "little")


def _pattern(files: Iterable[str]) -> str | None:
    """Return a pattern for the part of paths that differs; None if it is not one name with a number."""
    paths = [file.split("/") for file in sorted(files)]
    if len({len(path) for path in paths}) != 1:
        return None
    for place, names in enumerate(zip(*paths, strict=True)):
        if len(set(names)) > 1:
            parts: list[Any] = [re.fullmatch(r"(\D*)(\d+)(\D*)", name) for name in names]
            if not all(parts) or len({(part[1], part[3]) for part in parts}) > 1:
                return None
            end = "/" if place < len(paths[0]) - 1 else "$"
            return f"/{re.escape(parts[0][1])}([0-9]+){re.escape(parts[0][3])}{end}"
    return None
