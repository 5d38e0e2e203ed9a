"""
The columns of what a replay answers.

Which quota a throttle belongs to is decided as a broker decides it (`metrics.combination`): the one that asks for the longer time, the
request quota on a tie. A request is counted under one type only, so that the figures of the types of an entity add up.

Figures of several brokers are added up; those that say "longest" are the largest of one broker.
"""

from typing import Final

import pyarrow as pa


def _column(
    name: str, kind: pa.DataType, about: str, *, null: bool = False
) -> "pa.Field[pa.DataType]":
    return pa.field(name, kind, nullable=null, metadata={"about": about})


RESULTS: Final = pa.schema(
    [
        _column("candidate", pa.string(), "Name of the candidate."),
        _column(
            "broker",
            pa.string(),
            "The broker; null for the sum of all of them.",
            null=True,
        ),
        _column("user", pa.string(), "Principal's name, as in history."),
        _column("client_id", pa.string(), "Client id, as in history."),
        _column(
            "quota_type",
            pa.string(),
            "produce, fetch, request or controller_mutation. There is a row only where the candidate limits the entity by this type and the entity charged it.",
        ),
        _column(
            "limit",
            pa.float64(),
            "What the candidate allows: bytes/s, percent of a thread, or partitions/s; per broker, mutations in all.",
        ),
        _column(
            "level",
            pa.string(),
            "Level of the rule that decides, such as user_client; others of the entity may share its limit.",
        ),
        _column("requests", pa.int64(), "Requests that charged this quota, as logged."),
        _column(
            "amount",
            pa.float64(),
            "What they charged: bytes, percent-seconds of a thread (handler and network), or partitions.",
        ),
        _column(
            "throttled_requests",
            pa.int64(),
            "Requests that this quota throttles. Closed loop: a request that is sent again counts each time.",
        ),
        _column(
            "throttled_ms", pa.int64(), "Sum of the throttle times of these requests."
        ),
        _column(
            "muted_ms",
            pa.int64(),
            "Time in which this quota muted at least one connection of the entity: the union of [decision, decision + throttle) over its throttled requests, up to `active_ms`'s end.",
        ),
        _column(
            "active_ms",
            pa.int64(),
            "Time in which the entity was active or muted: the union of [decision, decision + 1 s) over its requests and of what `muted_ms` measures, up to 1 s after the last request.",
        ),
        _column(
            "throttled_share",
            pa.float64(),
            "muted_ms / active_ms, from 0 to 1; 0 without a request.",
        ),
        _column(
            "longest_throttle_ms", pa.int64(), "The longest throttle time of a request."
        ),
        _column(
            "delayed_requests",
            pa.int64(),
            "Requests that had to wait for the mute of their connection that this quota had caused, and Fetches that this quota had answered empty.",
        ),
        _column("delayed_bytes", pa.int64(), "Bytes of these requests."),
        _column(
            "rejected_requests",
            pa.int64(),
            "Requests refused with THROTTLING_QUOTA_EXCEEDED, clients being new enough to understand it. Closed loop: each time.",
        ),
        _column(
            "rejected_mutations",
            pa.int64(),
            "Partitions that these asked for, but for those that the log shows as granted and the candidate grants, too.",
        ),
        _column(
            "recovery_ms",
            pa.int64(),
            "Longest time to recover after a burst: from the first throttled request to the first one of the entity that charges this quota and is not throttled by any; without such a one, to the end of the last throttle.",
        ),
        _column(
            "late_ms",
            pa.int64(),
            "Closed loop: how much later than logged the entity's latest request came, largest of its connections. Open loop: 0.",
        ),
        _column(
            "unsent_requests",
            pa.int64(),
            "Closed loop: requests that had not been sent when the replay ended (`Settings.drain_ms`). Open loop: 0.",
        ),
        _column("unsent_bytes", pa.int64(), "Bytes of these requests."),
    ]
)
"""One row per candidate, entity and quota type, and per broker when asked for."""

CLOSED_LOOP_ONLY: Final = ("late_ms", "unsent_requests", "unsent_bytes")
"""What an open loop does not measure: 0 in its results, and unknown wherever they are shown."""

PREDICTIONS: Final = pa.schema(
    [
        _column(
            "row", pa.int64(), "Number of the request in the given history, from 0."
        ),
        _column("user", pa.string(), "As in history."),
        _column("client_id", pa.string(), "As in history."),
        _column("broker", pa.string(), "As in history."),
        _column("timestamp", pa.int64(), "As in history, ms UTC."),
        _column("api_key", pa.int16(), "As in history."),
        _column(
            "quota_type",
            pa.string(),
            "The type of the quota beside the request quota that this request charges; null for none.",
            null=True,
        ),
        _column(
            "own_ms",
            pa.int64(),
            "What that quota asks for, ms as 32 bits hold it; 0 within the quota or without one.",
        ),
        _column("request_ms", pa.int64(), "What the request quota asks for, ms."),
        _column(
            "throttle_ms",
            pa.int64(),
            "The throttle of the request: the larger one, at least 0.",
        ),
        _column(
            "throttled_by",
            pa.string(),
            "The quota type that throttles it; null if none does.",
            null=True,
        ),
        _column(
            "rejected",
            pa.bool_(),
            "Whether a mutation is refused (THROTTLING_QUOTA_EXCEEDED).",
        ),
        _column(
            "reported_ms", pa.int64(), "What the log says the client was told, ms."
        ),
    ]
)
"""One row per request of the history, in its order."""
