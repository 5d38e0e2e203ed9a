"""Kafka's releases, as far as they differ in quotas, and how a broker shows its own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .errors import MalformedName
from .numbers import INT_MAX, LONG_MAX
from .protocol import ApiKey

_VERSION: Final = re.compile(
    r"(\d{1,3})\.(\d{1,3})(?:\.\d{1,4})*(-(?:zookeeper|zk))?(?:-[A-Za-z0-9.-]{1,40})?", re.IGNORECASE
)
METADATA_LEVELS: Final = (
    (33, 4, 4),
    (30, 4, 3),
    (29, 4, 2),
    (27, 4, 1),
    (25, 4, 0),
    (21, 3, 9),
    (20, 3, 8),
    (19, 3, 7),
    (14, 3, 6),
    (11, 3, 5),
    (8, 3, 4),
    (7, 3, 3),
)
"""Newest levels of the feature `metadata.version` that releases offer, the newest first (Kafka: `MetadataVersion`)."""


@dataclass(frozen=True, slots=True, order=True)
class KafkaRelease:
    """
    A release of Kafka that an engine, a replay or a client follows.

    Each property below is a difference that quotas have between 2.8 and 4.4. They were found by comparing the classes
    of quotas and metrics from release to release, and are held by running Kafka's own classes of 2.8.2, 3.7.2, 4.3.1
    and 4.4.0 beside ours (`tests/differential`). Not different are: the precedence of rules, the token bucket, how
    throttle times are rounded, which of two quotas mutes a channel, what a Produce and a Fetch are charged for, and
    from which version on a client waits (up to 4.3).
    """

    major: int
    minor: int
    zookeeper: bool = False
    """True if ZooKeeper keeps the metadata rather than KRaft; releases since 4.0 have no ZooKeeper mode."""

    @staticmethod
    def parse(text: str) -> "KafkaRelease":
        """
        Return the release of a version such as `4.4`, `4.3.1` or `4.4.0-SNAPSHOT`.

        `3.9-zookeeper` is a release in ZooKeeper mode, and so are all up to 3.2, in which KRaft was a preview.

        Raises:
            MalformedName: it is no version, or one since 4.0 in ZooKeeper mode.

        """
        match = _VERSION.fullmatch(text)
        if match is None or not text.isascii():
            raise MalformedName(text, "is not a version of Kafka such as 4.4, 4.3.1 or 3.9-zookeeper")
        release = KafkaRelease(int(match[1]), int(match[2]))
        if match[3] and release >= KAFKA_4_0:
            raise MalformedName(text, "does not exist: Kafka has no ZooKeeper mode since 4.0")
        if match[3] or release < KAFKA_3_3:
            return KafkaRelease(release.major, release.minor, zookeeper=True)
        return release

    @staticmethod
    def of_metadata_version(level: int) -> "KafkaRelease | None":
        """
        Return the release of a broker by its newest level of `metadata.version`; None for a release before 3.3.

        Brokers in KRaft mode report it in their answers to ApiVersions (KIP-584). A level between two releases is a
        preview of the older one; a level above all (`is_known_level`) is of an unknown release, and counts as the
        newest.
        """
        for newest, major, minor in METADATA_LEVELS:
            if level >= newest:
                return KafkaRelease(major, minor)
        return None

    @staticmethod
    def is_known_level(level: int) -> bool:
        """Return whether a level of `metadata.version` is at most that of the newest known release."""
        return level <= METADATA_LEVELS[0][0]

    @staticmethod
    def exact_words() -> str:
        """Return the releases that the engine follows to the last bit, in words."""
        modes = {
            mode_release.zookeeper: [
                release for release in sorted(EXACT_RELEASES) if release.zookeeper is mode_release.zookeeper
            ]
            for mode_release in EXACT_RELEASES
        }
        kraft, zookeeper = (f"{of_mode[0].version} to {of_mode[-1].version}" for of_mode in (modes[False], modes[True]))
        return f"{kraft}, and {zookeeper} in ZooKeeper mode"

    @property
    def version(self) -> str:
        """Version without the mode, such as `3.9`."""
        return f"{self.major}.{self.minor}"

    @property
    def is_exact(self) -> bool:
        """True if the engine follows this release to the last bit."""
        return self in EXACT_RELEASES

    @property
    def keeps_overlapping_windows(self) -> bool:
        """
        True if a window counts until its **last event** is as old as the measured time (since 3.8, apache/kafka#15889).

        Up to 3.7 it counts until its **start** is that old, and the ring has `samples` windows rather than one more, so
        that a steady client's rate falls by a window's worth when a window leaves, and a throttle ends a second earlier
        or later (Kafka: `SampledStat`).
        """
        return self >= KAFKA_3_8

    @property
    def shortest_span_ms(self) -> int:
        """
        Least divisor of a rate in ms (Kafka: `Rate.windowSize`): 1 since 3.3.

        Up to 3.2 it may be 0, at the first moment of a single window (`quota.window.num=1`): the rate is infinite and
        its throttle 0 ms.
        """
        return 1 if self >= KAFKA_3_3 else 0

    @property
    def saturates(self) -> bool:
        """
        True if throttle times of byte rates and of the request quota stop at 2^31-1 ms (since 4.4).

        A throttle time is computed in 64 bits and sent in 32 (`ClientQuotaManager.recordAndGetThrottleTimeMs`). Up to
        4.3 the high bits are cut off: above 24.8 days the time turns negative, which counts as not throttled, or into
        any other number. Throttle times of controller mutations are cut in any release
        (`ControllerMutationQuotaManager`, `AbstractControllerMutationQuota`). At 1 B/s one request of 3 MB is enough.
        """
        return self >= KAFKA_4_4

    @property
    def longest_rate_ms(self) -> int:
        """Longest throttle time of a rate in ms, before it is cut to 32 bits."""
        return INT_MAX if self.saturates else LONG_MAX

    @property
    def forgets_removed_rules(self) -> bool:
        """
        True if rules in force alone decide under which tags a client is measured (since 4.2, KAFKA-19282).

        Up to 4.1 each shape of rules (client-id, user, pair) that a broker has seen since it started counts, also after
        the last rule of that shape was removed, and even if a rule was removed that had never been set: a client may
        then be measured under other tags, and is measured although no rule is left (Kafka:
        `ClientQuotaManager.quotaTypesEnabled`).
        """
        return self >= KAFKA_4_2

    @property
    def cuts_mutation_waits_first(self) -> bool:
        """
        True if the rest of a mutation's throttle is cut to 32 bits before it is raised to 0 (since 4.2).

        Up to 4.1 it is raised to 0 first: above 24.8 days it may be negative, which throttles nothing either
        (`AbstractControllerMutationQuota`).
        """
        return self >= KAFKA_4_2

    @property
    def forgets_mutation_throttles_of_zero(self) -> bool:
        """
        True if a mutation's throttle that rounded to 0 ms stays 0 (since 4.2, `AbstractControllerMutationQuota`).

        Up to 4.1 the time since the violation is subtracted from it as from any other, so that a clock that is set back
        by 11 s leaves 11,000 ms.
        """
        return self >= KAFKA_4_2

    @property
    def enforces_controller_mutations(self) -> bool:
        """
        True if a `controller_mutation_rate` has an effect: in ZooKeeper mode (KIP-599), and in KRaft mode since 3.5.

        The KRaft controllers of 3.3 and 3.4 store the rule and never ask for it (they lack
        `ControllerApis.newQuotaFor`).
        """
        return self.zookeeper or self >= KAFKA_3_5

    @property
    def charges_validate_only(self) -> bool:
        """
        True if a validate-only mutation costs as much as a real one.

        It does in KRaft mode (`ReplicationControlManager`), and not in ZooKeeper mode (`ZkAdminManager`).
        """
        return self.enforces_controller_mutations and not self.zookeeper

    @property
    def forwards_mutations(self) -> bool:
        """
        True if a broker forwards mutations to the controller and mutes for it, through its request quota (KRaft).

        In ZooKeeper mode clients send mutations to the broker that is the controller, which mutes through
        `ControllerMutation`.
        """
        return not self.zookeeper

    @property
    def tells_callbacks_of_metadata(self) -> bool:
        """
        True if a custom quota callback learns of topics and brokers.

        It does in ZooKeeper mode, and in KRaft mode since 4.0 (`DynamicTopicClusterQuotaPublisher`).
        """
        return self.zookeeper or self >= KAFKA_4_0

    @property
    def charges_forwarded_requests(self) -> bool:
        """
        True if a broker charges its own time for a request that it forwarded to the controller.

        It does since 3.3 (`RequestHandlerHelper.sendForwardedResponse`).
        """
        return self >= KAFKA_3_3

    @property
    def expires_exempt_time(self) -> bool:
        """
        True if `exempt-request-time` begins with an exempt request and ends after an hour without one (up to 3.2).

        It does not come back before a restart: the broker records on the sensor that expired (Kafka:
        `ClientRequestQuotaManager.exemptSensor`).
        """
        return self < KAFKA_3_3

    @property
    def has_static_defaults(self) -> bool:
        """
        True if the static defaults of `server.properties` apply to client-ids without a rule (up to 2.8).

        `quota.producer.default` and `quota.consumer.default` were deprecated in 0.11 and removed in 3.0. Their values
        are unknown here.
        """
        return self < KAFKA_3_0

    @property
    def checks_quota_values(self) -> bool:
        """
        True if a controller refuses any quota of 0 or below.

        KRaft controllers do since 3.5 (`ClientQuotaControlManager.validateQuotaKeyValue`).
        """
        return self >= KAFKA_3_5 and not self.zookeeper

    @property
    def refuses_infinite_quotas(self) -> bool:
        """True if a controller refuses a quota that is NaN or infinite (since 4.4)."""
        return self >= KAFKA_4_4

    def __str__(self) -> str:
        return f"{self.version} in ZooKeeper mode" if self.zookeeper else self.version


KAFKA_3_0: Final = KafkaRelease(3, 0)
KAFKA_3_3: Final = KafkaRelease(3, 3)
KAFKA_3_5: Final = KafkaRelease(3, 5)
KAFKA_3_8: Final = KafkaRelease(3, 8)
"""Release that changed the windows of all rates and averages."""
KAFKA_4_0: Final = KafkaRelease(4, 0)
KAFKA_4_2: Final = KafkaRelease(4, 2)
KAFKA_4_4: Final = KafkaRelease(4, 4)
"""Release that changed throttle times, the responses after which a client waits, and the quotas that Kafka stores."""
OLDEST_RELEASE: Final = KafkaRelease(2, 8, zookeeper=True)
"""Oldest release that is followed and tested."""
NEWEST_RELEASE: Final = KAFKA_4_4
"""Release that is followed if no other is known."""

_WITH_ZOOKEEPER: Final = ((2, 8), *((3, minor) for minor in range(10)))
_WITH_KRAFT: Final = (*((3, minor) for minor in range(3, 10)), *((4, minor) for minor in range(5)))
EXACT_RELEASES: Final = frozenset(
    (
        *(KafkaRelease(major, minor, zookeeper=True) for major, minor in _WITH_ZOOKEEPER),
        *(KafkaRelease(major, minor) for major, minor in _WITH_KRAFT),
    )
)
"""Releases that the engine follows to the last bit; KRaft up to 3.2 was a preview and is not among them."""

_FIRST_VERSIONS: Final = (
    (ApiKey.API_VERSIONS, 5, KAFKA_4_4),
    (ApiKey.DESCRIBE_LOG_DIRS, 5, KafkaRelease(4, 3)),
    (ApiKey.LIST_OFFSETS, 11, KAFKA_4_2),
    (ApiKey.FETCH, 18, KafkaRelease(4, 1)),
    (ApiKey.PRODUCE, 12, KAFKA_4_0),
    (ApiKey.FETCH, 17, KafkaRelease(3, 9)),
    (ApiKey.PRODUCE, 11, KAFKA_3_8),
    (ApiKey.FETCH, 16, KafkaRelease(3, 7)),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 4, KafkaRelease(3, 6)),
    (ApiKey.LIST_OFFSETS, 8, KAFKA_3_5),
    (ApiKey.LEADER_AND_ISR, 7, KafkaRelease(3, 4)),
    (ApiKey.DESCRIBE_LOG_DIRS, 4, KAFKA_3_3),
    (ApiKey.DESCRIBE_LOG_DIRS, 3, KafkaRelease(3, 2)),
    (ApiKey.FETCH, 13, KafkaRelease(3, 1)),
    (ApiKey.LIST_OFFSETS, 7, KAFKA_3_0),
    (ApiKey.LIST_OFFSETS, 6, KafkaRelease(2, 8)),
    (ApiKey.FETCH, 12, KafkaRelease(2, 7)),
    (ApiKey.DESCRIBE_LOG_DIRS, 2, KafkaRelease(2, 6)),
    (ApiKey.OFFSET_FETCH, 7, KafkaRelease(2, 5)),
)
"""First releases whose brokers answer versions of APIs that do not depend on other nodes; the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRange:
    """The releases that a broker may be of, as far as its APIs show."""

    oldest: KafkaRelease | None
    """Oldest possible release; None for one before 2.5."""
    newest: KafkaRelease | None
    """Newest possible release; None for one that is at least as new as the newest known."""

    @staticmethod
    def of_api_versions(newest: Mapping[int, int]) -> "ReleaseRange | None":
        """
        Return the releases whose brokers answer these APIs.

        None if no broker has them, as in the answer of a broker to an ApiVersions of an unknown version, which has that
        API alone.

        Args:
            newest: newest version by API key, as in an answer to ApiVersions.

        """
        if ApiKey.FETCH not in newest:
            return None
        zookeeper = ApiKey.LEADER_AND_ISR in newest
        later: KafkaRelease | None = None
        for api, version, release in _FIRST_VERSIONS:
            if api is ApiKey.LEADER_AND_ISR and not zookeeper:
                continue
            if newest.get(api, -1) >= version:
                oldest = KafkaRelease(release.major, release.minor, zookeeper=zookeeper)
                return ReleaseRange(
                    oldest=oldest, newest=None if later is None else _before(later, zookeeper=zookeeper)
                )
            later = release
        return ReleaseRange(oldest=None, newest=KafkaRelease(2, 4, zookeeper=True))

    @property
    def zookeeper(self) -> bool:
        """True if ZooKeeper keeps the metadata."""
        return any(release is not None and release.zookeeper for release in (self.oldest, self.newest))

    def __str__(self) -> str:
        if self.oldest is None:
            return f"{self.newest} or before"
        if self.newest is None:
            return f"{self.oldest} or later"
        if self.oldest == self.newest:
            return str(self.oldest)
        return f"{self.oldest.version} to {self.newest}"


def _before(release: KafkaRelease, *, zookeeper: bool) -> KafkaRelease:
    major, minor = (release.major, release.minor - 1) if release.minor else {3: (2, 8), 4: (3, 9)}[release.major]
    return KafkaRelease(major, minor, zookeeper=zookeeper)
