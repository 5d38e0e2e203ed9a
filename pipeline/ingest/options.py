"""What an ingest is given, where its rows go, and what it reports."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Self, TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from ..errors import BadOption, BadSnapshot
from ..request_log.parsing import LogSource
from ..request_log.schema import QUARANTINE, REQUESTS
from ..table import Table, TableLayout
from ..table.storage import BUCKETS

REQUESTS_LAYOUT: Final = TableLayout(bucket_of="user", buckets=BUCKETS, day_of="timestamp")
"""As usage history lies, so that history needs no shuffle."""
_Partitions: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """How to read a log. Raises `BadOption`."""

    broker: str | None = None
    """Name of the broker, when all files are of one; quotas are per broker."""
    broker_pattern: str | None = None
    """Regular expression with one group, the broker's name in a file's path, such as `/broker-([0-9]+)/`."""
    zone: str = "UTC"
    """IANA name of the zone of the times, which log4j writes as local time."""
    snapshot: str | None = None
    """Path of the partitions by topic before the log began: a JSON object such as `{"orders": 12, "payments": 6}`."""
    names: str = "*"
    """Which files of a folder are logs, as a shell pattern on their names."""
    follow_links: bool = False
    """Whether links in a folder may lead out of it."""

    def __post_init__(self) -> None:
        if self.broker and self.broker_pattern:
            raise BadOption("give the broker's name or a pattern for it, not both")
        _ = self._zone, self._pattern

    def source(self, file: str) -> LogSource:
        """What is known of lines of one file."""
        found = self._pattern.search(file) if self._pattern else None
        broker = found.group(1) if found else self.broker
        return LogSource(file=file, broker=broker, zone=self._zone)

    def topics(self) -> Mapping[str, int]:
        """Partitions by topic; empty without a snapshot. Raises `BadSnapshot`."""
        if not self.snapshot:
            return {}
        try:
            content = Path(self.snapshot).read_bytes()
            return msgspec.json.decode(content, type=dict[str, _Partitions])
        except OSError as error:
            raise BadSnapshot(self.snapshot, error.strerror or str(error)) from error
        except msgspec.MsgspecError as error:
            raise BadSnapshot(self.snapshot, str(error)) from error

    @cached_property
    def _zone(self) -> tzinfo:
        try:
            return ZoneInfo(self.zone)
        except (KeyError, OSError, ValueError) as error:
            why = f"{self.zone!r} is not a zone; use a name such as Europe/Berlin"
            raise BadOption(why) from error

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        if self.broker_pattern is None:
            return None
        subject = f"the broker pattern {self.broker_pattern!r}"
        try:
            pattern = re.compile(self.broker_pattern)
        except re.error as error:
            raise BadOption(f"{subject}: {error}") from error
        if pattern.groups != 1:
            raise BadOption(f"{subject} needs one group, the broker's name")
        return pattern


class IngestTables(NamedTuple):
    """The tables that logs go into: `requests` and `quarantine` in a folder."""

    requests: Table
    quarantine: Table

    @classmethod
    def create(cls, folder: str) -> Self:
        """Make them, or open those that are there; raises `TableError`."""
        at = folder.rstrip("/")
        return cls(
            Table.create(f"{at}/requests", REQUESTS, REQUESTS_LAYOUT),
            Table.create(f"{at}/quarantine", QUARANTINE, TableLayout()),
        )


@dataclass(slots=True)
class IngestReport:
    """Counts of lines, each in exactly one of them."""

    read: int = 0
    kept: int = 0
    """Requests that were added."""
    quarantined: int = 0
    """Lines that could not be read and were added to the quarantine."""
    duplicates: int = 0
    """Requests that were there before, or twice in the input."""
    quarantined_before: int = 0
    """Unreadable lines that were in the quarantine before, or twice in the input."""
    forwarded: int = 0
    """Controllers' second lines of requests that brokers log."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Quarantined lines by reason."""
    broken: dict[str, str] = field(default_factory=dict)
    """Files that could not be read to their end, and why; what was read of them counts."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What else the folders hold, and why it was not read."""

    def add(self, later: Self) -> None:
        """Add the counts of later lines of the same run."""
        for name in ("read", "kept", "quarantined", "duplicates", "quarantined_before", "forwarded"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.reasons.update(later.reasons)

    @property
    def nothing_readable(self) -> bool:
        """Whether none of the lines was a request, or there was none."""
        return self.read == self.quarantined + self.quarantined_before
