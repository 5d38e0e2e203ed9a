"""What some agents do not tell, and which alerts that concerns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something that not every agent tells."""

    what: str
    """As in the table of ``docs/dialects.md``."""
    families: Sequence[Family]
    dialects: Sequence[str]
    """Of the agents that do not tell it."""
    silent: Sequence[str]
    """Alerts that never fire without it, the common beginning of their names left out."""
    weaker: Sequence[str] = ()
    """Alerts that know less without it."""


GAPS: Final = (
    Gap(
        what="mutation quotas: rate, tokens, throttle time",
        families=(catalog.CONTROLLER_MUTATION_TOKENS,),
        dialects=("confluent",),
        silent=("MutationTokensExhausted",),
        weaker=("MutationThrottled", "RequestThrottled"),
    ),
    Gap(
        what="delay queues",
        families=(catalog.DELAY_QUEUE_SIZE,),
        dialects=("kafka_2_0_0", "confluent"),
        silent=("DelayQueueGrowing",),
        weaker=("ThrottleSpike", "ManyClientsThrottled"),
    ),
    Gap(
        what="exempt request time",
        families=(catalog.EXEMPT_REQUEST_THREADS,),
        dialects=("kafka_2_0_0", "confluent"),
        silent=("RequestTimeNearCapacity", "ExemptRequestTimeHigh"),
    ),
    Gap(
        what="throttled time by request",
        families=(catalog.REQUEST_THROTTLED_SECONDS,),
        dialects=("kafka_2_0_0", "confluent", "strimzi"),
        silent=("ThrottleSpike",),
    ),
    Gap(
        what="new connections, replication, tiered storage",
        families=(
            catalog.LISTENER_CONNECTION_THROTTLE_SECONDS,
            catalog.IP_CONNECTION_THROTTLE_SECONDS,
            catalog.REPLICATION_LIMIT,
        ),
        dialects=("kafka_2_0_0", "confluent"),
        silent=(
            "ConnectionsThrottled",
            "ConnectionsOfAddressRefused",
            "ReplicationThrottleLeftOn",
        ),
    ),
)
