"""Search for quotas that cannot have throttled a client at some time, because their clients used too little."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.rules import RuleTable

from .columns import CLIENT
from .history import History, rollup
from .history.schema import BYTES_COLUMNS
from .rates import peaks

_WINDOW_MS: Final = 11_000
"""Length of all windows together: the defaults of `quota.window.num` times `quota.window.size.seconds`."""
_SHORTEST: Final = 1.1
"""
Largest factor by which a broker's average may be above the average over complete windows.

A broker that has just dropped the oldest of eleven windows divides by ten.
"""
_COLUMNS: Final = (
    *CLIENT, "timestamp", "completed", "api_key", *BYTES_COLUMNS.values(), "thread_time_ms", "network_time_ms",
    "mutations_charged", "mutation_timestamp", "throttle_ms", "refused",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A quota that may have throttled a client on a broker at some time."""

    kind: QuotaType
    client: tuple[str, str]
    """User and client-id."""
    broker: str
    span_ms: tuple[int, int]
    """First and last time, epoch ms, between which the client was throttled."""
    bound: float
    """Bound in Kafka's unit."""


def below_their_bounds(
    history: History, suspects: Sequence[Suspect], tables: Mapping[QuotaType, RuleTable]
) -> set[Suspect]:
    """
    Return the suspects whose quota was not reached in their time.

    All clients that share the quota used less than the bound, in all windows that end in that time, by the requests of
    the history. Windows are assumed to be the brokers' default.

    Quotas of controller mutations are never returned: earlier requests may have emptied their bucket.
    """
    checked = [suspect for suspect in suspects if not suspect.kind.token_bucket]
    if not checked:
        return set()
    begin = min(suspect.span_ms[0] for suspect in checked) - _WINDOW_MS
    end = max(suspect.span_ms[1] for suspect in checked) + 1_000
    groups = {_group(suspect.kind, *suspect.client, suspect.broker, tables) for suspect in checked}
    # if every group is of one user, requests of other users play no part
    users = {suspect.client[0] for suspect in checked} if all(user for _, user, *_ in groups) else None
    amounts: dict[_Group, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    files = [file for file in history.detail.files() if file.overlaps(begin, end)]
    for batch in history.detail.batches(files, _COLUMNS):
        rows = pa.Table.from_batches([batch])
        rows = rows.filter((pc.field("timestamp") >= begin) & (pc.field("timestamp") < end))
        if users is not None:
            rows = rows.filter(pc.is_in(rows["user"], pa.array(sorted(users), pa.string())))
        for client, kind, start, amount in _charges(rows):
            group = _group(kind, *client, tables)
            if group in groups:
                amounts[group][start] += amount
    return {
        suspect
        for suspect in checked
        if _highest(suspect, amounts[_group(suspect.kind, *suspect.client, suspect.broker, tables)]) < suspect.bound
    }


_Group = tuple[QuotaType, str, str, str]
"""Key of usage that a broker measures with one sensor: quota type, tags of user and client-id, broker."""


def _group(kind: QuotaType, user: str, client_id: str, broker: str, tables: Mapping[QuotaType, RuleTable]) -> _Group:
    """Return the key under which a broker measures a client."""
    return kind, *tables[kind].metric_tags(user, client_id), broker


def _charges(rows: pa.Table) -> Iterable[tuple[tuple[str, str, str], QuotaType, int, float]]:
    """Yield the client with its broker, the quota type, the begin of the second in epoch ms, and the charged amount."""
    for row in rollup(rows).select((*CLIENT, "quota_type", "start", "amount")).to_pylist():
        if row["amount"]:
            yield _client(row), _KINDS[row["quota_type"]], row["start"], row["amount"]
    for kind, name in BYTES_COLUMNS.items():
        has_unknown_size: Any = pc.field("api_key").isin(pa.array(kind.apis, pa.int16())) & pc.field(name).is_null()
        for row in rows.filter(has_unknown_size).select((*CLIENT, "timestamp")).to_pylist():
            # with an infinite amount its quota is never taken for one that was not reached
            yield _client(row), kind, row["timestamp"] // 1_000 * 1_000, np.inf


_KINDS: Final = {kind.label: kind for kind in QuotaType}


def _client(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the user, the client id and the broker of a row."""
    return row["user"], row["client_id"], row["broker"]


def _highest(suspect: Suspect, used: Mapping[int, float]) -> float:
    """Return the highest average that a broker may have measured in the suspect's time, from amounts by second."""
    if not used:
        return 0.0
    starts = np.array(sorted(used), np.int64)
    amounts = np.array([used[start] for start in starts.tolist()])
    begin, end = suspect.span_ms
    inside = (starts >= begin - _WINDOW_MS) & (starts <= end)
    if not np.isfinite(amounts[inside]).all():
        return np.inf
    highest = peaks(suspect.kind, starts[inside], amounts[inside])
    return float(highest.max(initial=0.0)) * _SHORTEST
