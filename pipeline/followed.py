"""Which release of Kafka a replay follows, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from quotascope.metrics import NEWEST_RELEASE, KafkaRelease


class KnownBy(Enum):
    """What names the release; the values are those of JSON."""

    OPTION = "option"
    CLUSTER = "cluster"
    LOG = "log"
    DEFAULT = "default"


_WORDS: Final = {
    KnownBy.OPTION: "as --kafka-version says",
    KnownBy.CLUSTER: "as the cluster reports",
    KnownBy.LOG: "as the log reports",
    KnownBy.DEFAULT: "the newest, as no other is named by --kafka-version",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A release whose arithmetic of throttle times is followed; the newest unless another is known."""

    release: KafkaRelease = NEWEST_RELEASE
    known_by: KnownBy = KnownBy.DEFAULT

    @property
    def note(self) -> str:
        """A sentence for a report."""
        about = (
            "stop there"
            if self.release.saturates
            else "wrap around and count as none or as any other time"
        )
        return f"Throttle times follow Kafka {self.release}, {_WORDS[self.known_by]}: above 24.8 days those of byte rates and request time {about}."

    def values(self) -> dict[str, str]:
        """What JSON says about it."""
        return {"version": str(self.release), "known_by": self.known_by.value}


def followed(
    given: KafkaRelease | None,
    *,
    cluster: KafkaRelease | None = None,
    log: KafkaRelease | None = None,
) -> Followed:
    """Return the release that is followed: the given one, else the one that wrote the log, else the cluster's, else the newest."""
    known = (
        (given, KnownBy.OPTION),
        (log, KnownBy.LOG),
        (cluster, KnownBy.CLUSTER),
    )
    for release, known_by in known:
        if release is not None:
            return Followed(release=release, known_by=known_by)
    return Followed()
