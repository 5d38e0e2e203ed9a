"""
Throttle episodes in the request log: from the first to the last throttle of a client on a broker.

A throttle lasts from the decision until the throttle time is over. A throttle that begins at most
`EPISODE_PAUSE_SECONDS` after the end of another one belongs to the same episode. An update appends *fragments*, which
are the episodes of the new requests alone. Readers merge fragments, so that late requests join their episodes.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.windows import EPISODE_PAUSE_SECONDS

from .columns import CLIENT, CLIENT_COLUMNS, Column, column, having
from .table import Table

EPISODES: Final = pa.schema([
    *CLIENT_COLUMNS,
    column("quota_type", pa.string(), (
        "Beside the request quota, which of the two throttled not being in the log: produce, fetch or "
        "controller_mutation, by the API; request for other APIs.")),
    column("began", pa.int64(), "The first decision to throttle: ms since 1970, UTC."),
    column("ended", pa.int64(), "The latest end of a throttle time: ms since 1970, UTC."),
    column("throttled", pa.int64(), "Requests that were throttled or refused."),
    column("throttle_ms", pa.int64(), "Their throttle time, ms."),
    column("longest_ms", pa.int64(), "The longest throttle time, ms."),
])  # fmt: skip
"""Fragments of throttle episodes. Fragments of one key that are at most 60 s apart are one episode (`merged`)."""
COLUMNS: Final = (*CLIENT, "timestamp", "api_key", "throttle_ms", "refused")
"""Columns of history that are read."""
KEY: Final = (*CLIENT, "quota_type")
"""Key of an episode."""
_MERGED: Final[dict[str, Any]] = {
    "began": "min",
    "ended": "max",
    "throttled": "sum",
    "throttle_ms": "sum",
    "longest_ms": "max",
}
"""Aggregation of the numbers of an episode's fragments."""
_PAUSE_MS: Final = int(1_000 * EPISODE_PAUSE_SECONDS)
_TYPES: Final = {api: kind for kind in QuotaType for api in kind.apis}
"""Quota type, beside the request quota, that can throttle requests of an API, by API."""


def fragments_of(history: pa.Table) -> pa.Table:
    """Return the episodes (`EPISODES`) of some rows of HISTORY alone, with at least `COLUMNS`, in any order."""
    throttles: Column = pc.max_element_wise(history.column("throttle_ms"), pa.scalar(0, pa.int32()))
    history = history.append_column("throttle", throttles.cast(pa.int64()))
    hit = pc.or_(pc.greater(throttles, pa.scalar(0)), history.column("refused"))
    throttled = history.filter(hit)
    began, throttle = throttled.column("timestamp"), throttled.column("throttle")
    type_indices: Column = pc.index_in(throttled.column("api_key"), pa.array(_TYPES, pa.int16()))
    labels: Column = pa.array([kind.label for kind in _TYPES.values()])
    columns: dict[str, Column] = {
        **{name: throttled.column(name) for name in CLIENT},
        "quota_type": pc.fill_null(labels.take(type_indices), QuotaType.REQUEST.label),
        "began": began,
        "ended": pc.add(began, throttle),
        "throttled": pa.repeat(1, len(throttled)).cast(pa.int64()),
        "throttle_ms": throttle,
        "longest_ms": throttle,
    }
    return merged(pa.table(columns, schema=EPISODES))


def merged(fragments: pa.Table) -> pa.Table:
    """Merge fragments (`EPISODES`) into episodes, sorted by key and time. Merged fragments may be merged again."""
    if not len(fragments):
        return fragments
    rows = fragments.sort_by([(name, "ascending") for name in (*KEY, "began")])
    is_new_key = np.zeros(len(rows), np.bool_)
    for name in KEY:
        codes = rows.column(name).combine_chunks().dictionary_encode().indices
        is_new_key[1:] |= np.diff(codes.to_numpy()) != 0
    began, ended = (rows.column(name).to_numpy() for name in ("began", "ended"))
    # Times become ranks that are higher for each following key, so that one running maximum serves all keys. An episode
    # begins where a fragment begins more than a pause after the latest end of those before it.
    ranked, ranks = np.unique(np.r_[began - _PAUSE_MS, ended], return_inverse=True)
    begins, ends = ranks.reshape(2, -1) + np.cumsum(is_new_key) * len(ranked)
    reached = np.maximum.accumulate(ends)
    is_first_of_episode = np.r_[True, begins[1:] > reached[:-1]]
    numbers: Column = pa.array(np.cumsum(is_first_of_episode))
    grouped = rows.append_column("number", numbers).group_by([*KEY, "number"], use_threads=False)
    groups = grouped.aggregate(list(_MERGED.items()))
    names = [*KEY, *(f"{name}_{how}" for name, how in _MERGED.items())]
    return groups.select(names).rename_columns(EPISODES.names).cast(EPISODES)


def episodes_in(
    table: Table, user: str | None = None, client_id: str | None = None, begin_ms: int = 0, end_ms: int = 1 << 62
) -> pa.Table:
    """
    Return the complete episodes (`EPISODES`) that overlap a period (ms since 1970), sorted by key and time.

    `table` has fragments. None stands for all users, or client ids. All days of a user's shard are read, because an
    episode may begin before the period.
    """
    files = table.files() if user is None else table.files_of(user)
    tables = (pa.Table.from_batches([batch]) for batch in table.batches(files))
    parts = [rows.filter(having(rows, {"user": user, "client_id": client_id})) for rows in tables]
    episodes = merged(pa.concat_tables([EPISODES.empty_table(), *parts]))
    return episodes.filter((pc.field("ended") >= begin_ms) & (pc.field("began") <= end_ms))
