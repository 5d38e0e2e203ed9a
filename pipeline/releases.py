"""Releases of Kafka that wrote a log, and the one that a replay follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import EXACT_RELEASES, NEWEST_RELEASE, KafkaRelease, ReleaseRange

from .errors import NoTable
from .table import File, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLayout:
    """Layout of the lines of some releases."""

    name: str
    """Value of the column `layout`."""
    releases: str
    """Releases whose brokers write such lines."""


CURRENT: Final = LineLayout(name="4.x", releases="4.0 and later")
DEPRECATIONS: Final = LineLayout(name="3.7", releases="3.7 to 3.9")
"""Layout in which old versions of requests are marked as `requestApiVersionDeprecated` in the header (KIP-896)."""
BEFORE_4_0: Final = LineLayout(name="3.x", releases="2.8 to 3.9")
"""Layout with APIs and versions that KIP-896 removed in 4.0."""
FIRST: Final = LineLayout(name="2.8", releases="2.8")
"""Layout in which a Fetch response names its partitions `partitionResponses` and their size `recordSetSizeInBytes`."""
LAYOUTS: Final = (CURRENT, DEPRECATIONS, BEFORE_4_0, FIRST)
"""All layouts; `tests/pipeline/request_log` has lines of a real broker for each."""

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
"""Requests of the controller in ZooKeeper mode."""
_OLDEST_IN_4_0: Final = {
    0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2, 20: 1, 23: 2, 29: 1, 30: 1, 31: 1, 32: 1, 34: 1, 35: 1, 38: 1, 39: 1,
    40: 1, 41: 1,
}  # fmt: skip
"""Oldest version by API key, of APIs that lost some versions (KIP-896)."""


def layout_of(api_key: int, api_version: int, *, deprecated: bool) -> str:
    """Return the name of the layout of a line."""
    if deprecated:
        return DEPRECATIONS.name
    if api_version < _OLDEST_IN_4_0.get(api_key, 0) or api_key in _NO_LONGER_IN_4_0:
        return BEFORE_4_0.name
    return CURRENT.name


_LEVEL: Final = re.compile(rb'"name":"metadata.version","minVersion":\d{1,5},"maxVersion":(\d{1,5})\b')
_APIS: Final = re.compile(rb'"response":\{"errorCode":0,"apiKeys":\[([^]]{1,20000})\]')
_API: Final = re.compile(rb'"apiKey":(\d{1,5}),"minVersion":\d{1,5},"maxVersion":(\d{1,5})\b')
_RELEASES: Final = tuple(sorted(EXACT_RELEASES))
_NEWER: Final = "quotascope.kafka newer"
_HUNDRED: Final = 100


NODES: Final = "quotascope.nodes of the cluster"
"""Name of a note of the table of requests: the greatest number of nodes in a response to Metadata."""


def level_of(line: bytes) -> int | None:
    """
    Return the release in the line of an ApiVersions, as a number: the newest `metadata.version` that it names.

    A number below 0 is that of a broker in ZooKeeper mode, `-100 * major - minor`. None if the line names none.
    """
    if match := _LEVEL.search(line):
        return int(match[1])
    if (answered := _APIS.search(line)) is None:
        return None
    releases = ReleaseRange.of_api_versions({int(key): int(newest) for key, newest in _API.findall(answered[1])})
    if releases is None or releases.oldest is None or not releases.oldest.zookeeper:
        return None
    return -_HUNDRED * releases.oldest.major - releases.oldest.minor


def release_of_level(level: int) -> KafkaRelease | None:
    """Return the release of a number of `level_of`, None for one before 3.3 that names a level."""
    if level < 0:
        major, minor = divmod(-level, _HUNDRED)
        return KafkaRelease(major, minor, zookeeper=True)
    return KafkaRelease.of_metadata_version(level)


@dataclass(slots=True)
class Named:
    """Times when releases were named last, ms since 1970."""

    times: dict[tuple[KafkaRelease, str | None], int] = field(default_factory=dict)
    """Last times by release and broker; None in place of a broker stands for any broker."""
    newer: int | None = None
    """Time of a level above the known ones."""

    @classmethod
    def of(cls, brokers: Any, times: Any, levels: Any) -> Named:  # noqa: ANN401 - Arrow's columns
        """Return the releases that requests name, by broker and time; a null level names none."""
        levels_by_time = pa.table({"level": levels, "broker": brokers, "time": times}).drop_null()
        named = cls()
        for row in levels_by_time.group_by(["level", "broker"]).aggregate([("time", "max")]).to_pylist():
            release, time = release_of_level(row["level"]), row["time_max"]
            if release is not None:
                named.keep({(release, broker): time for broker in (None, row["broker"])})
            if not KafkaRelease.is_known_level(row["level"]):
                named.newer = max(time, named.newer or 0)
        return named

    def keep(self, times: Mapping[tuple[KafkaRelease, str | None], int]) -> None:
        """Keep the times when releases were named, if they are later."""
        for key, time in times.items():
            self.times[key] = max(time, self.times.get(key, time))

    def add(self, named: Named) -> None:
        """Add the times of other requests."""
        self.keep(named.times)
        if named.newer is not None:
            self.newer = max(named.newer, self.newer or 0)

    def notes(self) -> dict[str, int]:
        """Return the notes that a commit keeps."""
        notes = {_note(release, broker): time for (release, broker), time in self.times.items()}
        return notes if self.newer is None else notes | {_NEWER: self.newer}


NoteOf = Callable[[str], "int | None"]
"""Function for the notes of the table of requests by name (`Table.last_epoch`)."""


def releases_since(note_of: NoteOf, time: int) -> list[KafkaRelease]:
    """
    Return the releases that logs named at or after a time (ms since 1970), the newest first; else the last one before.

    The list is empty if none was ever named.
    """
    time_of_release = {release: note_of(_note(release)) for release in _RELEASES}
    last_times = {release: last_ms for release, last_ms in time_of_release.items() if last_ms is not None}
    since = sorted((release for release, last_ms in last_times.items() if last_ms >= time), reverse=True)
    return since or sorted(last_times, key=last_times.__getitem__)[-1:]


def release_of_broker(note_of: NoteOf, broker: str, releases: Iterable[KafkaRelease]) -> KafkaRelease | None:
    """Return the release that a broker named last, None if it named none of `releases`."""
    time_of_release = {release: note_of(_note(release, broker)) for release in releases}
    last_times = {release: last_ms for release, last_ms in time_of_release.items() if last_ms is not None}
    return max(last_times, key=last_times.__getitem__, default=None)


def _note(release: KafkaRelease, broker: str | None = None) -> str:
    """Return the name of the note with the time when a broker, or any, named a release last."""
    note = f"quotascope.kafka {release.version}{'-zookeeper' if release.zookeeper else ''}"
    return note if broker is None else f"{note} of {broker}"


class KnownBy(Enum):
    """Source of the release; the values are those of JSON."""

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
    """
    Release that a replay's windows, throttle times and mutation quotas follow.

    It is the newest unless another is known.
    """

    release: KafkaRelease = NEWEST_RELEASE
    known_by: KnownBy = KnownBy.DEFAULT
    also_named: tuple[KafkaRelease, ...] = ()
    """Older releases that the log also names."""
    by_broker: Mapping[str, KafkaRelease] = field(default_factory=dict)
    """Releases of brokers that the log shows to differ from `release`; they are replayed as of these."""
    is_newer: bool = False
    """True if the log names a release that is newer than the known ones."""
    earlier: tuple[tuple[str, int], ...] = ()
    """
    Releases, in words, that a stream followed before the log named others.

    Each has the time (ms since 1970, UTC) up to which it was followed.
    """

    def alike(self, followed: Followed) -> bool:
        """Return whether requests are decided as of the same releases."""
        return (self.release, dict(self.by_broker)) == (followed.release, dict(followed.by_broker))

    @property
    def words(self) -> str:
        """Releases that requests are decided as of, in words."""
        return f"{self.release}{self._others()}"

    def unless_log(self, named: Iterable[KafkaRelease], *, is_newer: bool = False) -> Followed:
        """Return the newest release that the log names; this one if an option or a cluster gave it, or no log does."""
        releases = sorted(named, reverse=True)
        if not releases or self.known_by is not KnownBy.DEFAULT:
            return self
        newest, *older = releases
        return Followed(release=newest, known_by=KnownBy.LOG, also_named=tuple(older), is_newer=is_newer)

    def release_of(self, broker: str) -> KafkaRelease:
        """Return the release that a broker's sensors follow."""
        return self.by_broker.get(broker, self.release)

    @property
    def enforces_controller_mutations(self) -> bool:
        """True if a controller mutation quota has an effect (`KafkaRelease.enforces_controller_mutations`)."""
        return any(release.enforces_controller_mutations for release in (self.release, *self.by_broker.values()))

    @property
    def note(self) -> str:
        """Sentences for a report with any throttle times."""
        return self.note_of(overflows=True)

    def note_of(self, *, overflows: bool) -> str:
        """
        Return sentences for a report.

        Args:
            overflows: throttle times may be longer than the 31 bits that brokers have for them.

        """
        sentences = [f"Throttle times follow Kafka {self.release}, {_WORDS[self.known_by]}{self._others()}"]
        if overflows:
            effect = "stop there" if self.release.saturates else "wrap around and count as none or as any other time"
            sentences[0] += f": above 24.8 days those of byte rates and request time {effect}"
        sentences[0] += "."
        sentences += [
            (
                f"Those of requests until {datetime.fromtimestamp(until_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC follow "
                f"Kafka {words}, as the stream knew no other then."
            )
            for words, until_ms in self.earlier
        ]
        if self.is_newer:
            sentences.append(
                f"The log is of a release newer than {NEWEST_RELEASE}, which is not known here: what it changed is "
                "not in these figures."
            )
        elif not self.release.is_exact:
            sentences.append(
                f"Kafka {self.release} was not compared with this engine, which is exact for "
                f"{KafkaRelease.exact_words()}."
            )
        if not self.release.enforces_controller_mutations:
            sentences.append(
                f"Kafka {self.release} stores controller mutation quotas and does not enforce them: they throttle "
                "and refuse nothing here."
            )
        if self.release.has_static_defaults:
            sentences.append(
                "Its quota.producer.default and quota.consumer.default in server.properties, if set, are not in "
                "these figures."
            )
        return " ".join(sentences)

    def _others(self) -> str:
        """Return the other releases that the log names in words; empty if there are none."""
        if not self.also_named:
            return ""
        if not self.by_broker:
            return f" (the newest that it names; some of it is of {', '.join(map(str, self.also_named))})"
        by_release: dict[KafkaRelease, list[str]] = {}
        for broker, release in sorted(self.by_broker.items()):
            by_release.setdefault(release, []).append(broker)
        listed = "; ".join(
            (
                f"{'broker' if len(brokers) == 1 else 'brokers'} {_listed(brokers)} "
                f"{'is' if len(brokers) == 1 else 'are'} replayed as of {release}"
            )
            for release, brokers in sorted(by_release.items(), reverse=True)
        )
        return f" (the newest that it names; {listed})"

    def values(self) -> dict[str, Any]:
        """Return the release for JSON."""
        return {
            "version": str(self.release),
            "known_by": self.known_by.value,
            "also_named": [str(release) for release in self.also_named],
            "by_broker": {broker: str(release) for broker, release in sorted(self.by_broker.items())},
            "newer_than_known": self.is_newer,
            "earlier": [{"version": words, "until": until_ms / 1_000} for words, until_ms in self.earlier],
        }


_LISTED: Final = 5
"""Number of brokers that a sentence names."""
_LONGEST: Final = 80
"""Number of characters of a broker's name that it shows."""


def _listed(brokers: list[str]) -> str:
    """Return some names of brokers, which are untrusted, on one line."""
    names = [
        "".join(character if character.isprintable() else "\ufffd" for character in name[:_LONGEST])
        for name in brokers[:_LISTED]
    ]
    other_count = len(brokers) - len(names)
    return ", ".join(names) + (f" and {other_count} more brokers" if other_count else "")


def followed(
    option: KafkaRelease | None, *, cluster: KafkaRelease | None = None, log: KafkaRelease | None = None
) -> Followed:
    """
    Return the release that is followed.

    It is that of the option, else the cluster's, else the one that wrote the log, else the newest.
    """
    candidates = ((option, KnownBy.OPTION), (cluster, KnownBy.CLUSTER))
    for release, known_by in candidates:
        if release is not None:
            return Followed(release=release, known_by=known_by)
    return Followed().unless_log(() if log is None else (log,))


def followed_by(
    folder: str, history: Table, kafka: Followed, brokers: Callable[[], Iterable[str]] | None = None
) -> Followed:
    """
    Return the release that a replay of a history follows: a known one, else the one in its logs, else the newest.

    If logs name several, each broker is replayed under the release that it named; the controller, and brokers that
    named none, are replayed under the newest.

    Args:
        folder: folder with the table of requests, if it was kept.
        history: history whose period counts.
        kafka: release that is known without the logs.
        brokers: returns the brokers of the history; called if logs name several releases. None reads them from the
            history.

    """
    try:
        requests = Table.open(f"{folder.rstrip('/')}/requests")
    except NoTable:
        return kafka
    begin = min((file.first_ms for file in history.files() if file.first_ms is not None), default=0)
    note_of = requests.last_epoch
    named_releases = releases_since(note_of, begin)
    newer = note_of(_NEWER)
    followed = kafka.unless_log(named_releases, is_newer=newer is not None and newer >= begin)
    if not followed.also_named:
        return followed
    names = brokers_of(history, history.files()) if brokers is None else brokers()
    releases = {name: release_of_broker(note_of, name, named_releases) or followed.release for name in names}
    return replace(
        followed, by_broker={name: release for name, release in releases.items() if release != followed.release}
    )


def brokers_of(history: Table, files: Iterable[File]) -> set[str]:
    """Return the names of the brokers in some files of a history."""
    names: set[str | None] = set()
    for batch in history.batches(files, ["broker"]):
        names.update(pc.unique(batch["broker"]).to_pylist())
    return {name for name in names if name is not None}
