"""The configured limits of a cluster, as the join needs them, and how reading them goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.release import ReleaseRange
from quotascope.metrics.kafka.rules import RuleTable

if TYPE_CHECKING:
    from quotascope.quotas import Entity

CONNECTION_KEY: Final = "connection_creation_rate"
"""The quota key of IP addresses, which limits no client (KIP-612)."""
DEFAULT_IP: Final = "<default>"
"""The name of the default rule of IP addresses."""
SETTINGS_OF: Final = "settings of broker "
"""The beginning of a name in ``Limits.missing``; the node id follows."""
QUOTA_KEYS: Final = (*(kind.quota_key for kind in QuotaType), CONNECTION_KEY)
"""All quota keys that can be configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The settings of one node that shape its quotas."""

    request_capacity_threads: float | None = None
    """
    ``num.io.threads`` + ``num.network.threads``, of which every listener has as many: Kafka's documentation counts them
    once (client quotas).
    """
    quota_samples: int = 11
    """``quota.window.num``."""
    quota_window_seconds: float = 1.0
    """``quota.window.size.seconds``: also the longest throttle of a request quota."""
    controller_quota_samples: int = 11
    """``controller.quota.window.num``."""
    controller_quota_window_seconds: float = 1.0
    """``controller.quota.window.size.seconds``."""
    quota_callback_class: str | None = None
    """``client.quota.callback.class``: where it is set, that class decides and not the configured rules."""
    connection_limit: float | None = None
    """``max.connection.creation.rate`` in connections/s; None when unlimited."""
    listener_connection_limits: Mapping[str, float] = field(default_factory=dict)
    """The same by listener in lower case; a listener that is not in it has the broker's."""
    replication_limits: Mapping[str, float] = field(default_factory=dict)
    """bytes/s by the label ``direction``; a direction that is not in it is not limited."""
    replication_origins: Mapping[str, str] = field(default_factory=dict)
    """
    Source of these limits, by the label ``direction``: this ``broker``, the default of ``all brokers``, or its
    ``file``; missing where unknown.
    """
    remote_storage_limits: Mapping[str, float] = field(default_factory=dict)
    """bytes/s by the label ``direction``; a direction that is not in it is not limited."""


_versions = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The quota configuration of one cluster at one moment. Never changed once made."""

    version: int = field(default_factory=_versions.__next__, init=False, compare=False, repr=False)
    """
    Number of these rules, nodes and releases, which decide on clients. Each object has a new one, also one that
    ``dataclasses.replace`` makes; only `after` keeps the version of limits in which these are the same.
    """
    rules: Mapping[QuotaType, RuleTable] = field(default_factory=dict)
    """The configured quotas of each type, bounds in Kafka's units; a missing type has none."""
    connection_limits: Mapping[str, float] = field(default_factory=dict)
    """New connections per second by IP address; the default rule reads ``<default>``."""
    nodes: Mapping[str, NodeSettings] = field(default_factory=dict)
    """Settings by node id."""
    cluster_id: str | None = None
    """Kafka's id of the cluster, or None when it could not be read."""
    active_controller: str | None = None
    """
    Node id of the leader of the KRaft quorum, in ZooKeeper mode of the controller; None when it could not be read.
    """
    releases: Mapping[str, ReleaseRange] = field(default_factory=dict)
    """The releases that each broker may be of, by node id; a broker that is not in it did not show its own."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Other things that could not be read, and the reason."""
    read_at: float
    """Unix time in seconds."""

    def remembers_removed_rules(self, node_id: str) -> bool:
        """
        Return whether a node may still measure clients under the tags of rules that were removed since its start.

        Kafka does so up to 4.1, and a node of an unknown release may. For a node that is only a controller, the oldest
        release of the brokers decides.
        """
        releases = [self.releases[node_id]] if node_id in self.releases else self.releases.values()
        oldest = [release.oldest for release in releases]
        return not oldest or any(release is None or not release.forgets_removed_rules for release in oldest)

    def after(self, previous: Limits) -> Limits:
        """
        Return these limits as the next read after ``previous``.

        What has not changed is the same object, and has the same version, so that results derived from it stay valid.
        """
        rules = {
            kind: previous.rules[kind] if previous.rules.get(kind) == table else table
            for kind, table in self.rules.items()
        }
        is_same = (rules, self.nodes, self.releases) == (previous.rules, previous.nodes, previous.releases)
        limits = replace(self, rules=rules)
        if is_same:
            object.__setattr__(limits, "version", previous.version)  # it is frozen, and not shared yet
        return limits

    @property
    def settings_missing(self) -> bool:
        """Return whether the settings of a broker could not be read."""
        return not self.nodes or any(setting.startswith("settings of ") for setting in self.missing)

    def count(self, quota_key: str) -> int:
        """Return the number of entities that have a quota of this key."""
        quota_type = QuotaType.of_quota_key(quota_key)
        if quota_type is None:
            return len(self.connection_limits)
        return len(self.rules.get(quota_type, ()))

    def quotas(self) -> dict[Entity, dict[str, float]]:
        """Return the quotas of users and client-ids: by entity, then by quota key, in Kafka's unit."""
        quotas: dict[Entity, dict[str, float]] = {}
        for kind, rules in self.rules.items():
            for entity, value in rules.items():
                quotas.setdefault(entity, {})[kind.quota_key] = value
        return quotas


def version_of(limits: Limits | None) -> int | None:
    """Return the version of limits; None where they are unknown."""
    return None if limits is None else limits.version


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChange:
    """A quota that was set, changed or removed between two reads."""

    read_at: float
    """Unix time in seconds of the read that showed it."""
    key: str
    entity: str
    """The entity in words, such as ``alice / <default>``."""
    old: float | None
    """Earlier value in Kafka's unit; None where there was none."""
    new: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsHealth:
    """The state of reading the configured limits."""

    configured: bool = True
    """False when no place to read the limits from is configured."""
    read_at: float | None = None
    """Unix time of the last success in seconds; in a snapshot by the clock as it is at ``Snapshot.taken_at``."""
    cluster_id: str | None = None
    """Kafka's id of the cluster that they are of; None when it is unknown."""
    error: str | None = None
    """Why the last read failed; None when it succeeded."""
    denied: bool = False
    """True if it failed for a missing permission or wrong credentials."""
    unsupported: bool = False
    """True if it failed because the cluster's release of Kafka is too old for it."""
    errors_total: int = 0
    changes_total: Mapping[str, int] = field(default_factory=dict)
    """Limits set, changed or removed, by quota key."""
    changes: tuple[LimitChange, ...] = ()
    """The latest of these, newest first."""
    changes_since: float | None = None
    """Unix time in seconds from which on changes are seen; None before the first read."""

    def age_seconds(self, now_seconds: float) -> float | None:
        """Return the time from the last success to ``now_seconds`` (Unix time); None without one."""
        return None if self.read_at is None else max(0.0, now_seconds - self.read_at)


class LimitsSource(Protocol):
    """The origin of the configured limits: the Admin API, or an engine in this process."""

    async def read(self) -> Limits:
        """Return the limits as configured now. Raises ``LimitsError``."""
        ...

    async def close(self) -> None:
        """Release connections. Safe to call twice."""
        ...
