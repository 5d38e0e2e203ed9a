"""Families of teams: what their clients use and may use, added up over the cluster; and how much brokers promise."""

from __future__ import annotations

from typing import Final

from ..kafka.entities import QuotaType
from .family import Family, counter, gauge
from .type_texts import TEXTS

TEAM_LABELS: Final = ("team",)
"""Name of the team; ``__unowned__`` for entities that no team owns, ``__undecided__`` where that is unknown."""

_WORDS: Final = {
    QuotaType.PRODUCE: "Bytes per second produced",
    QuotaType.FETCH: "Bytes per second fetched",
    QuotaType.REQUEST: "Request time used, in threads,",
    QuotaType.CONTROLLER_MUTATION: "Controller mutations per second",
}
_ALLOWED: Final = {
    QuotaType.PRODUCE: "Produce limits",
    QuotaType.FETCH: "Fetch limits",
    QuotaType.REQUEST: "Request time limits, in threads,",
    QuotaType.CONTROLLER_MUTATION: "Limits of controller mutations",
}

TEAM_USAGE: Final = {
    quota_type: gauge(
        f"kafka_quota_team_{quota_type.stem}_{quota_type.unit.name}",
        f"{_WORDS[quota_type]} by the quota entities of this team on all nodes that are read, entities beyond "
        "the cardinality limits included. A lower bound: entities whose usage is unknown are not in it.",
        TEAM_LABELS,
        quota_type.unit.documented,
        "computed",
    )
    for quota_type in TEXTS
}
"""Usage of teams, by quota type."""

TEAM_ALLOWED: Final = {
    quota_type: gauge(
        f"kafka_quota_team_allowed_{quota_type.stem}_{quota_type.unit.name}",
        f"{_ALLOWED[quota_type]} of this team's quota entities"
        f"{'' if quota_type is QuotaType.CONTROLLER_MUTATION else ', each times the number of brokers'}: what Kafka "
        "would let through at most; absent when an entity is unlimited, or its limit unknown.",
        TEAM_LABELS,
        quota_type.unit.documented,
        "computed",
    )
    for quota_type in TEXTS
}
"""Sums of limits of teams, by quota type."""

TEAM_STRANDED: Final[dict[QuotaType, Family]] = {
    quota_type: gauge(
        f"kafka_quota_team_stranded_{quota_type.stem}_{quota_type.unit.name}",
        f"{_ALLOWED[quota_type]} of this team's quota entities on brokers that these do not use: each limit counts "
        "once for each broker that would show the entity and has not seen it for an hour. A lower bound: limits and "
        "brokers that are unknown, or were started within the hour, are not in it. Which partitions a client uses is "
        "unknown.",
        TEAM_LABELS,
        quota_type.unit.documented,
        "computed",
    )
    for quota_type in TEXTS
    if quota_type is not QuotaType.CONTROLLER_MUTATION
}
"""Limits of teams that traffic of the last hour could not use, by quota type; one node limits controller mutations."""

TEAM_FAIRNESS_RATIO = gauge(
    "kafka_quota_team_fairness_ratio",
    "Jain's fairness index of this team's usage over all brokers: 1 if all have the same, 1 / brokers if one has all. "
    "Absent for fewer than two brokers, without usage, and where some of the usage is unknown.",
    ("quota_type", *TEAM_LABELS),
    "ratio",
    "computed",
)

TEAM_BUDGET_RATIO = gauge(
    "kafka_quota_team_budget_ratio",
    "Usage of this team / its budget over the cluster, which nothing enforces: 1 is the budget; absent without one. "
    "A lower bound: entities whose usage is unknown and nodes that are not read are not in it.",
    ("quota_type", *TEAM_LABELS),
    "ratio",
    "computed",
)

TEAM_THROTTLED_ENTITIES = gauge(
    "kafka_quota_team_throttled_entities",
    "Quota entities of this team that a broker throttles now by this quota, each counted once. A lower bound: an "
    "entity counts only if its throttle is known; absent if it is known of none.",
    ("quota_type", *TEAM_LABELS),
    "entities",
    "computed",
)

TEAM_BYTES: Final = {
    quota_type: counter(
        f"kafka_quota_team_{word}_bytes_total",
        f"Bytes {word} by the quota entities of this team since this exporter started: their rates times the seconds "
        "between its collections. A lower bound: usage of nodes that are not read, or answer too late, is not in it.",
        TEAM_LABELS,
        "bytes",
        "computed",
    )
    for quota_type, word in ((QuotaType.PRODUCE, "produced"), (QuotaType.FETCH, "fetched"))
}
"""Counters of the bytes of teams, by quota type."""

TEAM_SEEN_SECONDS = counter(
    "kafka_quota_team_seen_seconds_total",
    "Seconds in which all brokers were read while this exporter counted the bytes of teams; what was used in other "
    "seconds is unknown, or a part of it is.",
    (),
    "seconds",
    "computed",
)

SOLD_RATIO = gauge(
    "kafka_quota_sold_ratio",
    "Sum of the limits of the quota entities on this broker / its capacity: above 1, it cannot keep all promises. "
    "Entities without a limit are not in it. capacity is configured, or observed: the highest sum of usage since the "
    "exporter started while request handlers were idle enough; it may differ between two exporters of a broker.",
    ("quota_type", "broker", "capacity"),
    "ratio",
    "computed",
)
