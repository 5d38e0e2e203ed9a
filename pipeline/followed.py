"""Which release of Kafka a replay follows, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from quotascope.metrics import NEWEST_RELEASE, KafkaRelease

from .errors import NoTable
from .request_log.releases import releases_since
from .table import Table


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
        about = (
            "stop there"
            if self.release.saturates
            else "wrap around and count as none or as any other time"
        )
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
    given: KafkaRelease | None,
    *,
    cluster: KafkaRelease | None = None,
    log: KafkaRelease | None = None,
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
    begin = min((file.first for file in history.files() if file.first is not None), default=0)  # fmt: skip
    return kafka.unless_log(releases_since(requests.last_epoch, begin))
