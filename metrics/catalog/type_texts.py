"""Help of the families that each quota type has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..kafka.entities import QuotaType


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeTexts:
    """Help of the families of one quota type."""

    usage: str
    limit: str
    rule_limit: str
    callback_usage: str
    callback_limit: str | None = None
    """None where Strimzi's quotas plugin has no such limit."""


TEXTS: Final[Mapping[QuotaType, TypeTexts]] = {
    QuotaType.PRODUCE: TypeTexts(
        usage="Bytes per second produced by this quota entity.",
        limit="Produce limit of this quota entity on each broker; absent when unlimited.",
        rule_limit="Configured produce limit of this quota rule, used or not.",
        callback_usage="Bytes per second produced under the tags of a custom quota callback.",
        callback_limit="Produce limit of Strimzi's quotas plugin, which all clients of the broker share.",
    ),
    QuotaType.FETCH: TypeTexts(
        usage="Bytes per second fetched by this quota entity; can be negative.",
        limit="Fetch limit of this quota entity on each broker; absent when unlimited.",
        rule_limit="Configured fetch limit of this quota rule, used or not.",
        callback_usage="Bytes per second fetched under the tags of a custom quota callback; can be negative.",
        callback_limit="Fetch limit of Strimzi's quotas plugin, which all clients of the broker share.",
    ),
    QuotaType.REQUEST: TypeTexts(
        usage="Request time used by this quota entity, in threads.",
        limit="Request time limit of this quota entity on each broker, in threads; absent when unlimited.",
        rule_limit="Configured request time limit of this quota rule in threads, used or not.",
        callback_usage="Request time used under the tags of a custom quota callback, in threads.",
        callback_limit="Request limit of Strimzi's quotas plugin, which all clients of the broker share, in threads.",
    ),
    QuotaType.CONTROLLER_MUTATION: TypeTexts(
        usage="Controller mutations (partitions created, added or deleted) per second of this quota entity.",
        limit="Limit of controller mutations of this quota entity; absent when unlimited.",
        rule_limit="Configured limit of controller mutations of this quota rule, used or not.",
        callback_usage="Controller mutations per second under the tags of a custom quota callback.",
    ),
}
"""By quota type, in the order in which families are shown."""
