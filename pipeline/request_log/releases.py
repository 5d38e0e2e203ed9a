"""
Which releases of Kafka wrote a log.

Brokers name the newest `metadata.version` that they support in their answers to ApiVersions (KIP-584), which most connections begin with.
A table of requests keeps with its commits when each release was named last, so that replays follow it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics import KafkaRelease
from quotascope.metrics.kafka_release import METADATA_LEVELS

API_VERSIONS: Final = 18
"""Kafka's number of the request."""

_LEVEL: Final = re.compile(
    rb'"name":"metadata.version","minVersion":\d{1,5},"maxVersion":(\d{1,5})\b'
)
_KNOWN: Final = tuple(KafkaRelease(*release) for _, *release in METADATA_LEVELS)


def level_of(line: bytes) -> int | None:
    """The newest `metadata.version` that the line of an ApiVersions names; None where it names none."""
    found = _LEVEL.search(line)
    return int(found[1]) if found else None


def last_named(times: Any, levels: Any) -> dict[KafkaRelease, int]:  # noqa: ANN401 - Arrow's columns
    """When each release was named last, by the times of requests and what each says of its level (null: nothing)."""
    named = pa.table({"level": levels, "time": times}).group_by("level").aggregate([("time", "max")])  # fmt: skip
    found: dict[KafkaRelease, int] = {}
    for row in named.to_pylist():
        release = None if row["level"] is None else KafkaRelease.of_metadata_version(row["level"])  # fmt: skip
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


def releases_since(
    note_of: Callable[[str], int | None], time: int
) -> list[KafkaRelease]:
    """
    Return the releases that logs named at or after a time (ms since 1970), the newest first; else the one that was named last before.

    Empty where none was ever named, as in tables that were made before this was kept.

    Args:
        note_of: what the commits of the table of requests keep by name (`Table.last_epoch`).
        time: ms since 1970.

    """
    named = {release: note_of(_note(release)) for release in _KNOWN}
    known = {release: last for release, last in named.items() if last is not None}
    since = sorted((release for release, last in known.items() if last >= time), reverse=True)  # fmt: skip
    return since or sorted(known, key=known.__getitem__)[-1:]


def _note(release: KafkaRelease) -> str:
    return f"quotascope.kafka {release}"
