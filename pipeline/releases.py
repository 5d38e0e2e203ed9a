"""
Which releases of Kafka wrote a log, and which one a replay follows.

Brokers name the newest `metadata.version` that they support in their responses to ApiVersions (KIP-584), which most connections begin with.
A table of requests keeps with its commits when each release was named last, so that replays follow it.

A line does not name its broker's version, and its frame is the same since KIP-673: what differs are fields and versions of APIs. So each
line counts as of the oldest layout that its content shows; one that older brokers could have written as well counts as of the current
layout, which reads it the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics import NEWEST_RELEASE, KafkaRelease
from quotascope.metrics.kafka_release import METADATA_LEVELS
from quotascope.metrics.protocol import ApiKey

from .errors import NoTable
from .table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLayout:
    """What is known of the lines of some releases."""

    name: str
    """The value of the column `layout`."""
    releases: str
    source: str
    """Where this knowledge comes from: logs of real brokers, or documentation only."""


CURRENT: Final = LineLayout(name="4.x", releases="4.0 and later", source="logs of real brokers, 4.3.1 and 4.4.0")
DEPRECATIONS: Final = LineLayout(
    name="3.8 (documented)",
    releases="3.8 and 3.9",
    source="documentation: KIP-896 adds requestApiVersionDeprecated to the header",
)
FIRST: Final = LineLayout(
    name="2.8 (documented)",
    releases="2.8 to 3.7",
    source="documentation: KIP-673, and the APIs and versions that KIP-896 removed in 4.0",
)
LAYOUTS: Final = (CURRENT, DEPRECATIONS, FIRST)

_NO_LONGER_IN_4_0: Final = frozenset(
    map(
        int,
        (
            ApiKey.LEADER_AND_ISR,
            ApiKey.STOP_REPLICA,
            ApiKey.UPDATE_METADATA,
            ApiKey.CONTROLLED_SHUTDOWN,
        ),
    )
)
"""The controller's in ZooKeeper mode."""
_OLDEST_IN_4_0: Final = {
    0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2, 20: 1, 23: 2, 29: 1, 30: 1, 31: 1, 32: 1, 34: 1, 35: 1, 38: 1, 39: 1, 40: 1, 41: 1,
}  # fmt: skip
"""Oldest version by API key, of those that lost some (KIP-896)."""

_NAMES: Final = tuple(layout.name for layout in LAYOUTS)


def layout_of(api_key: int, api_version: int, *, deprecated: bool) -> str:
    """Name of the layout that a line counts as of."""
    if deprecated:
        return _NAMES[1]
    if api_version < _OLDEST_IN_4_0.get(api_key, 0) or api_key in _NO_LONGER_IN_4_0:
        return _NAMES[2]
    return _NAMES[0]


_LEVEL: Final = re.compile(rb'"name":"metadata.version","minVersion":\d{1,5},"maxVersion":(\d{1,5})\b')
_RELEASES: Final = tuple(KafkaRelease(*release) for _, *release in METADATA_LEVELS)


def level_of(line: bytes) -> int | None:
    """The newest `metadata.version` that the line of an ApiVersions names; None where it names none."""
    found = _LEVEL.search(line)
    return int(found[1]) if found else None


def last_named(times: Any, levels: Any) -> dict[KafkaRelease, int]:  # noqa: ANN401 - Arrow's columns
    """When each release was named last, by the times of requests and the level that each names (null: none)."""
    named = pa.table({"level": levels, "time": times}).drop_null()
    found: dict[KafkaRelease, int] = {}
    for row in named.group_by("level").aggregate([("time", "max")]).to_pylist():
        release = KafkaRelease.of_metadata_version(row["level"])
        if release is not None:
            keep(found, {release: row["time_max"]})
    return found


def keep(named: dict[KafkaRelease, int], others: Mapping[KafkaRelease, int]) -> None:
    """Take over when releases were named, where that was later."""
    for release, time in others.items():
        named[release] = max(time, named.get(release, time))


def notes(named: Mapping[KafkaRelease, int]) -> dict[str, int]:
    """What a commit keeps of when releases were named."""
    return {_note(release): time for release, time in named.items()}


def releases_since(note_of: Callable[[str], int | None], time: int) -> list[KafkaRelease]:
    """
    Return the releases that logs named at or after a time (ms since 1970), the newest first; else the one that was named last before.

    Empty where none was ever named, as in tables that were made before this was kept.

    Args:
        note_of: what the commits of the table of requests keep by name (`Table.last_epoch`).
        time: ms since 1970.

    """
    named = {release: note_of(_note(release)) for release in _RELEASES}
    known = {release: last for release, last in named.items() if last is not None}
    since = sorted((release for release, last in known.items() if last >= time), reverse=True)
    return since or sorted(known, key=known.__getitem__)[-1:]


def _note(release: KafkaRelease) -> str:
    return f"quotascope.kafka {release}"


class KnownBy(Enum):
    """What names the release; the values are those of JSON."""

    OPTION = "option"
    CLUSTER = "cluster"
    LOG = "log"
    DEFAULT = "default"


_WORDS: Final = {
    KnownBy.OPTION: "as --kafka-version says",
    KnownBy.CLUSTER: "as the cluster reports",
    KnownBy.LOG: "as the log says",
    KnownBy.DEFAULT: "the newest, as no other is named by --kafka-version",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The release that a replay's throttle times follow; the newest unless another is known."""

    release: KafkaRelease = NEWEST_RELEASE
    known_by: KnownBy = KnownBy.DEFAULT
    also_named: tuple[KafkaRelease, ...] = ()
    """Older releases that the log names as well."""

    def unless_log(self, named: Iterable[KafkaRelease]) -> Followed:
        """The same, but where only the default is known the newest release that the log names, if it names any."""
        releases = sorted(named, reverse=True)
        if not releases or self.known_by is not KnownBy.DEFAULT:
            return self
        newest, *older = releases
        return Followed(release=newest, known_by=KnownBy.LOG, also_named=tuple(older))

    @property
    def note(self) -> str:
        """A sentence for a report."""
        about = "stop there" if self.release.saturates else "wrap around and count as none or as any other time"
        older = ", ".join(map(str, self.also_named))
        also = f" (the newest that it names; some of it is of {older})" if older else ""
        return f"Throttle times follow Kafka {self.release}, {_WORDS[self.known_by]}{also}: above 24.8 days those of byte rates and request time {about}."

    def values(self) -> dict[str, str | list[str]]:
        """What JSON says about it."""
        return {
            "version": str(self.release),
            "known_by": self.known_by.value,
            "also_named": [str(release) for release in self.also_named],
        }


def followed(
    given: KafkaRelease | None, *, cluster: KafkaRelease | None = None, log: KafkaRelease | None = None
) -> Followed:
    """Return the release that is followed: the given one, else the cluster's, else the one that wrote the log, else the newest."""
    known = ((given, KnownBy.OPTION), (cluster, KnownBy.CLUSTER))
    for release, known_by in known:
        if release is not None:
            return Followed(release=release, known_by=known_by)
    return Followed().unless_log(() if log is None else (log,))


def followed_by(folder: str, history: Table, kafka: Followed) -> Followed:
    """
    Return the release that a replay of a history follows: a known one, else the one that its logs name, else the newest.

    Args:
        folder: where the table of requests lies as well, if it was kept.
        history: its period counts.
        kafka: what is known without the logs.

    """
    try:
        requests = Table.open(f"{folder.rstrip('/')}/requests")
    except NoTable:
        return kafka
    begin = min((file.first for file in history.files() if file.first is not None), default=0)
    return kafka.unless_log(releases_since(requests.last_epoch, begin))
