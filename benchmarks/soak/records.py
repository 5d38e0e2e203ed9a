"""Records of a run, one line of JSON each."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """One scrape."""

    kind: ClassVar = "scrape"
    at: float
    """Seconds since the run began, when it was asked for."""
    scraper: str
    seconds: float
    size: int = 0
    """Bytes on the wire."""
    samples: int = 0
    lost: str = ""
    """Reason why there was no complete answer in time; empty when there was one."""
    faults: tuple[str, ...] = ()
    """Faults of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A look at another page than /metrics, or a guest without manners."""

    kind: ClassVar = "visit"
    at: float
    path: str
    seconds: float
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Memory and handles of the exporter's process, and CPU time of all processes of the run."""

    kind: ClassVar = "usage"
    at: float
    rss_mib: float
    fds: int
    threads: int
    cpu_seconds: float
    other_cpu_seconds: float
    """CPU time of agents, scrapers and the broker."""
    load: float
    """The machine's, over a minute."""
    errors: int
    """Unexpected lines in the log so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Action on the exporter."""

    kind: ClassVar = "event"
    at: float
    what: str


Record = Scrape | Visit | Usage | Event
_KINDS: dict[str, type[Record]] = {record_type.kind: record_type for record_type in (Scrape, Visit, Usage, Event)}


class Book:
    """The file of a run. Every line is there at once, in case that the run does not end as it should."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        """Write it down."""
        self.records.append(record)
        line = {"kind": record.kind, **asdict(record)}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def read_book(path: Path) -> list[Record]:
    """Return the records of an earlier run."""
    return list(_read(path.read_text("utf-8").splitlines()))


def _read(lines: Iterable[str]) -> Iterable[Record]:
    for line in lines:
        values = json.loads(line)
        kind = _KINDS[values.pop("kind")]
        if "faults" in values:
            values["faults"] = tuple(values["faults"])
        yield kind(**values)
