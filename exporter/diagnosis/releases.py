"""
The releases of Kafka that a cluster's brokers are of.

In words, whether they were tested, and what they do not do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange
from quotascope.pages.words import counted

from ..limits import Limits
from ..untrusted import one_line
from .catalog import Catalog, Finding
from .units import UNKNOWN, type_name

TESTED: Final = frozenset(
    {
        KafkaRelease(2, 8, zookeeper=True),
        *(KafkaRelease(3, minor) for minor in (3, 4, 6, 7, 8)),
        KafkaRelease(3, 9, zookeeper=True),
        *(KafkaRelease(4, minor) for minor in range(5)),
    }
)
"""Releases with which quotascope was tested on real brokers (docs/start/dialects.md)."""
OLDEST: Final = KafkaRelease(2, 8, zookeeper=True)
_FIRST_WITH_LIMITS: Final = (2, 6)
"""The first release whose quotas the Admin API reports (KIP-546)."""
_FIRST_WITH_MUTATIONS: Final = (2, 7)
"""The first release with quotas for controller mutations and IP addresses (KIP-599, KIP-612)."""


def release_text(releases: Mapping[str, ReleaseRange]) -> str:
    """
    Return the release of a cluster, such as ``3.9 in ZooKeeper mode``.

    If there are several releases, the text has the brokers of each; without any, it is unknown.
    """
    brokers: dict[str, list[str]] = {}
    for node_id, release in sorted(releases.items(), key=lambda item: (len(item[0]), item[0])):
        brokers.setdefault(str(release), []).append(one_line(node_id))
    if not brokers:
        return UNKNOWN
    if len(brokers) == 1:
        return next(iter(brokers))
    return ", ".join(
        f"{release} (broker{'s' if len(nodes) > 1 else ''} {', '.join(nodes)})"
        for release, nodes in sorted(brokers.items())
    )


def release_line(limits: Limits | None) -> str:
    """Return the release of a cluster by its limits, and whether each of its releases was tested."""
    releases = {} if limits is None else limits.releases
    tested = {is_tested(release) for release in releases.values()}
    if not tested:
        return release_text(releases)
    if len(tested) > 1:
        words = "in part not tested"
    else:
        words = "tested" if True in tested else "not tested"
    return f"{release_text(releases)}, {words}"


def is_tested(release: ReleaseRange) -> bool:
    """Return whether each release that a broker may be of was tested."""
    return bool(_possible(release)) and all(candidate in TESTED for candidate in _possible(release))


def release_findings(releases: Mapping[str, ReleaseRange]) -> Iterator[Finding]:
    """Yield a finding on whether each release of the brokers is one that was tested."""
    for release in dict.fromkeys(releases.values()):
        newest = release.newest
        if is_tested(release):
            yield Catalog.KAFKA_TESTED.found(release)
        elif newest is not None and newest < OLDEST:
            yield _too_old(release, newest)
        elif newest is None:
            yield Catalog.KAFKA_NEWER.found(release)
        else:
            yield Catalog.KAFKA_UNTESTED.found(release)


def unenforced(releases: Iterable[ReleaseRange], kind: QuotaType) -> ReleaseRange | None:
    """
    Return the release of a cluster that stores quotas of a type and does not enforce them.

    Return None if the release of each broker may enforce them.
    """
    if kind is not QuotaType.CONTROLLER_MUTATION:
        return None
    for release in releases:
        possible = _possible(release)
        if possible and not any(candidate.enforces_controller_mutations for candidate in possible):
            return release
    return None


def unenforced_text(releases: Mapping[str, ReleaseRange], kind: QuotaType) -> str | None:
    """Return the reason why quotas of a type have no effect under these releases (by node id); None if they have."""
    release = unenforced(releases.values(), kind)
    if release is None:
        return None
    return f"Kafka {release} does not enforce {type_name(kind)} quotas in KRaft mode (3.5 and later do)"


def enforcement_findings(limits: Limits) -> Iterator[Finding]:
    """Yield the configured quotas that the brokers' release does not enforce."""
    for kind in QuotaType:
        count, reason = limits.count(kind.quota_key), unenforced_text(limits.releases, kind)
        if count and reason is not None:
            yield Catalog.RULES_NOT_ENFORCED.found(
                kind.quota_key, rules=counted(count, "configured limit"), reason=reason
            )


def _possible(release: ReleaseRange) -> list[KafkaRelease]:
    """Return the releases that a broker may be of; empty for one with an open end."""
    oldest, newest = release.oldest, release.newest
    if oldest is None or newest is None:
        return []
    next_major = {(2, 9): (3, 0), (3, 10): (4, 0)}  # 2.8 and 3.9 are the last releases of their major version
    candidates = []
    version = oldest.major, oldest.minor
    while version <= (newest.major, newest.minor):
        major, minor = version
        candidates.append(KafkaRelease(major, minor, zookeeper=oldest.zookeeper))
        next_minor = major, minor + 1
        version = next_major.get(next_minor, next_minor)
    return candidates


def _too_old(release: ReleaseRange, newest: KafkaRelease) -> Finding:
    """Return the finding on a release that is older than the tested ones; it says what works nevertheless."""
    version = newest.major, newest.minor
    if version < _FIRST_WITH_LIMITS:
        works = (
            "Usage and throttle times are shown; limits and rules cannot be read, because the Admin API reports "
            "quotas since 2.6."
        )
    elif version < _FIRST_WITH_MUTATIONS:
        works = (
            "Limits, rules, usage and throttle times are shown; it has no quotas for controller mutations and IP "
            "addresses, and its request log is not JSON."
        )
    else:
        works = (
            "Limits, rules, usage and throttle times are shown; its request log is not JSON, so that there is no "
            "what-if."
        )
    return Catalog.KAFKA_TOO_OLD.found(release, works=works)
