"""Options, tables and report of an ingest."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, Self, TypeAlias
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.protocol import ApiKey

from ..columns import Column
from ..errors import BadOption, BadSnapshot
from ..request_log.parsing import LogSource, Parsed
from ..request_log.schema import QUARANTINE, REQUESTS
from ..table import Table, TableLayout
from ..table.storage import SHARDS, by_user
from .brokers import Brokers
from .files import printable

if TYPE_CHECKING:
    from ..losses import Losses

MOST_DETAILS: Final = 1_000
"""Number of details of quarantined lines that are counted."""
_SIZED: Final = (int(ApiKey.PRODUCE), int(ApiKey.FETCH), int(ApiKey.SHARE_FETCH))
"""APIs whose requests or responses are charged to a byte-rate quota."""
_Partitions: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """Options for reading a log. Raises `BadOption`."""

    broker: str | None = None
    """Name of the broker, if all files are of one broker."""
    broker_pattern: str | None = None
    """
    Regular expression for the path of a file, in which a group is the broker's name, such as `/broker-([0-9]+)/`.

    If it has several groups, the one that is called `broker` is used.
    """
    zone: str = "UTC"
    """IANA name of the time zone of the log: log4j writes local times."""
    snapshot: str | None = None
    """
    Path of a file with the number of partitions by topic before the log began.

    It is a JSON object such as `{"orders": 12, "payments": 6}`.
    """
    names: str = "*"
    """Shell pattern for the names of the files in a folder that are logs."""
    follow_links: bool = False
    """True to follow links that lead out of a folder."""

    def __post_init__(self) -> None:
        if self.broker and self.broker_pattern:
            raise BadOption("give the broker's name or a pattern for it, not both")
        if self.broker is not None and not self.broker.strip():
            raise BadOption("the broker's name is empty")
        _ = self._zone, self._pattern  # raises `BadOption` for a wrong one

    def source(self, file: str) -> LogSource:
        """
        Return the facts about all lines of one file: file, broker and time zone.

        Raises `BadOption` if the pattern does not match the path.
        """
        file = printable(file)
        return LogSource(file=file, broker=self._broker_of(file), zone=self._zone)

    @property
    def names_brokers(self) -> bool:
        """True if the options name the broker of each file."""
        return self.broker is not None or self.broker_pattern is not None

    def _broker_of(self, file: str) -> str | None:
        """
        Return the name of a file's broker by these options; None if no option names it.

        Raises `BadOption` if the pattern does not match the path.
        """
        if self._pattern is None:
            return self.broker
        match = self._pattern.search(file)
        groups = self._pattern.groupindex
        group = "broker" if "broker" in groups else next(iter(groups), 1)
        broker = match.group(group) if match else None
        if not broker:
            raise BadOption(
                f"the broker pattern {self.broker_pattern!r} finds no broker's name in {file!r}: ingest this file by "
                "itself, with --broker"
            )
        return str(broker)

    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions by topic from the snapshot; empty without one. Raises `BadSnapshot`."""
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
        """The time zone of the log. Raises `BadOption`."""
        try:
            return ZoneInfo(self.zone)
        except (KeyError, OSError, ValueError) as error:
            problem = f"{self.zone!r} is not a zone; use a name such as Europe/Berlin"
            raise BadOption(problem) from error

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """The pattern for the broker's name; None without one. Raises `BadOption`."""
        if self.broker_pattern is None:
            return None
        subject = f"the broker pattern {self.broker_pattern!r}"
        try:
            pattern = re.compile(self.broker_pattern)
        except re.error as error:
            raise BadOption(f"{subject}: {error}") from error
        if not pattern.groups or (len(pattern.groupindex) > 1 and "broker" not in pattern.groupindex):
            raise BadOption(f"{subject} needs one group, the broker's name, or one that is called broker")
        return pattern


class IngestTables(NamedTuple):
    """The tables that logs go into: `requests` and `quarantine` in a folder."""

    requests: Table
    quarantine: Table

    @classmethod
    def create(cls, folder: str, shards: int = SHARDS) -> Self:
        """
        Create the tables, or open the existing ones.

        Args:
            folder: path or URI; each table is a folder in it.
            shards: number of shards that users are spread over, which cannot be changed later. The history has the same
                shards, so that it needs no shuffle.

        Raises:
            TableError: the tables cannot be created, or have other columns.

        """
        base = folder.rstrip("/")
        return cls(
            Table.create(f"{base}/requests", REQUESTS, by_user(shards, "timestamp")),
            Table.create(f"{base}/quarantine", QUARANTINE, TableLayout()),
        )


@dataclass(slots=True)
class IngestReport:
    """Report of an ingest. Every line that was read is in exactly one of the first counts."""

    read: int = 0
    """Number of all lines."""
    kept: int = 0
    """Number of requests that were added."""
    quarantined: int = 0
    """Number of lines that could not be read; equal texts share a row of the quarantine."""
    duplicates: int = 0
    """Number of requests that the table held before this run."""
    repeated: int = 0
    """Number of repetitions, within the input, of new requests."""
    quarantined_before: int = 0
    """Number of unreadable lines that were in the quarantine before this run."""
    forwarded: int = 0
    """Number of lines of controllers about requests that brokers log, too."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Number of quarantined lines by reason."""
    details: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of quarantined lines by reason and detail, for the `MOST_DETAILS` most frequent ones."""
    apis: Counter[tuple[str, int, bool]] = field(default_factory=Counter)
    """Number of lines by file, number of the API, and whether they could be read."""
    brokers: Brokers = field(default_factory=Brokers, compare=False)
    """The brokers of the requests."""
    losses: "Losses | None" = field(default=None, compare=False)
    """Losses of the history in the time of the new requests; None if nothing looked for them."""
    broken: dict[str, str] = field(default_factory=dict)
    """Files that could not be read to their end, with the reason; their lines before that are counted."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files and folders that were not read, with the reason."""

    def add(self, later: Self) -> None:
        """Add the counts of later lines of the same run."""
        for name in ("read", "kept", "quarantined", "duplicates", "repeated", "quarantined_before", "forwarded"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.reasons.update(later.reasons)
        self._add_details(later.details)
        self.apis.update(later.apis)
        self.brokers.add(later.brokers)

    def count_apis(self, parsed: Parsed) -> None:
        """Count parsed lines by file, API, and whether they could be read."""
        for rows, readable in ((parsed.requests, True), (parsed.quarantine, False)):
            columns: dict[str, Column] = {name: rows[name] for name in ("file", "api_key")}
            columns["lines"] = rows["lines"] if "lines" in rows.column_names else pa.repeat(1, len(rows))
            has_api: Column = pc.is_valid(columns["api_key"])
            sums = pa.table(columns).filter(has_api).group_by(["file", "api_key"]).aggregate([("lines", "sum")])
            for row in sums.to_pylist():
                self.apis[row["file"], row["api_key"], readable] += row["lines_sum"]

    def count_refused(self, rows: pa.Table) -> None:
        """Count lines of the quarantine by reason and detail."""
        self.quarantined += int(pc.sum(rows["lines"]).as_py() or 0)
        sums = rows.select(("reason", "detail", "lines")).group_by(["reason", "detail"]).aggregate([("lines", "sum")])
        counts = Counter({(row["reason"], row["detail"]): row["lines_sum"] for row in sums.to_pylist()})
        for (reason, _), lines in counts.items():
            self.reasons[reason] += lines
        self._add_details(counts)

    def _add_details(self, counts: Counter[tuple[str, str]]) -> None:
        """Add counts, and keep the most frequent details."""
        self.details.update(counts)
        if len(self.details) > MOST_DETAILS:
            most_frequent = sorted(self.details.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_DETAILS]
            self.details = Counter(dict(most_frequent))

    @property
    def span_ms(self) -> tuple[int, int] | None:
        """Completion of the first new request, and the ms after that of the last one, ms since 1970; None without."""
        sightings = self.brokers.sightings.values()
        if not sightings:
            return None
        return min(sighting.first_ms for sighting in sightings), max(sighting.last_ms for sighting in sightings) + 1

    @property
    def unread_apis(self) -> list[tuple[str, int, int]]:
        """File, number of the API and number of lines of Produce, Fetch or ShareFetch, if none could be read."""
        return sorted(
            (file, api, lines)
            for (file, api, readable), lines in self.apis.items()
            if not readable and api in _SIZED and not self.apis[file, api, True]
        )

    @property
    def nothing_readable(self) -> bool:
        """True if no line was a request, or there was no line."""
        return self.read == self.quarantined + self.quarantined_before
