"""What has to be known about logs to read them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from zoneinfo import ZoneInfo

from ..errors import BadOption
from ..request_log.parsing import Source
from ..request_log.snapshot import read_snapshot


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to read a log. Raises `BadOption`."""

    broker: str | None = None
    """Name of the broker, when all files are of one; quotas are per broker."""
    broker_pattern: str | None = None
    """Regular expression whose one group is the broker's name in a file's path, such as `/broker-([0-9]+)/`."""
    zone: str = "UTC"
    """IANA name of the zone of the times, which log4j writes as local time."""
    snapshot: str | None = None
    """Path of partitions by topic before the log began (`read_snapshot`)."""
    names: str = "*"
    """Which files of a folder are logs, as a shell pattern on their names."""

    follow_links: bool = False
    """Whether links in a folder may lead out of it."""

    def __post_init__(self) -> None:
        if self.broker and self.broker_pattern:
            raise BadOption("give the broker's name or a pattern for it, not both")
        _ = self._zone, self._pattern

    def source(self, file: str) -> Source:
        """What is known of lines of one file."""
        found = self._pattern.search(file) if self._pattern else None
        broker = found.group(1) if found else self.broker
        return Source(file=file, broker=broker, zone=self._zone)

    def topics(self) -> Mapping[str, int]:
        """Partitions by topic; empty without a snapshot. Raises `BadSnapshot`."""
        return read_snapshot(self.snapshot) if self.snapshot else {}

    @cached_property
    def _zone(self) -> tzinfo:
        try:
            return ZoneInfo(self.zone)
        except (KeyError, OSError, ValueError) as error:
            raise BadOption(
                f"{self.zone!r} is no zone; use a name such as Europe/Berlin"
            ) from error

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        if self.broker_pattern is None:
            return None
        try:
            pattern = re.compile(self.broker_pattern)
        except re.error as error:
            raise BadOption(
                f"the broker pattern {self.broker_pattern!r}: {error}"
            ) from error
        if pattern.groups != 1:
            raise BadOption(
                f"the broker pattern {self.broker_pattern!r} needs one group, the broker's name"
            )
        return pattern
