"""
History on disk: committed tables in a folder, and their upkeep.

`history` holds one row a request, `seconds` its sums, `episodes` its throttle episodes, `topics` the bytes by topic. `history` and `topics`
follow the table of requests, the others follow `history`: what is appended there is taken over exactly once, late requests included.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Self

import pyarrow as pa

from .. import episodes, topics
from ..errors import NoHistory, NoTable
from ..table import Follower, Run, Table, TableLayout, follow, run_here
from ..table.storage import BUCKETS, Storage
from .charges import COLUMNS, ROLLUP_COLUMNS, history_of, rollup
from .schema import HISTORY, ROLLUP

NAMES: Final = ("requests", "quarantine", "history", "seconds", "topics", "episodes", "shadow")
"""The tables of a folder, in the order in which they are made of each other."""
DETAIL: Final = ("requests", "history", "seconds", "topics")
"""Those that a replay and `usage` read and draw, and that lose days together."""


@dataclass(frozen=True, kw_only=True)
class History:
    """The tables of a usage history."""

    detail: Table
    """One row a request (`HISTORY`)."""
    seconds: Table
    """Sums (`ROLLUP`); a key may have several rows, which add up."""
    topics: Table
    """Bytes by topic (`TOPICS`); a folder of an earlier release has none before it is updated."""
    episodes: Table
    """Fragments of throttle episodes (`EPISODES`); as above."""

    @classmethod
    def create(cls, folder: str, buckets: int = BUCKETS) -> Self:
        """
        Make the tables of a history, or open those that are there.

        Args:
            folder: a path or URI; each table is a folder in it.
            buckets: into how many parts users are spread; cannot be changed later.

        Raises:
            TableError: they cannot be made, or are of another release.

        """
        layout = partial(TableLayout, bucket_of="user", buckets=buckets)
        detail, sums = layout(day_of="timestamp"), layout(day_of="start")
        return cls(
            detail=Table.create(f"{folder}/history", HISTORY, detail),
            seconds=Table.create(f"{folder}/seconds", ROLLUP, sums),
            topics=Table.create(f"{folder}/topics", topics.TOPICS, sums),
            episodes=Table.create(f"{folder}/episodes", episodes.EPISODES, layout(day_of="began")),
        )

    @classmethod
    def open(cls, folder: str) -> Self:
        """
        Open the tables of a history.

        Raises:
            NoHistory: there is none.
            NoTable: its first ingest was interrupted.

        """
        detail, seconds = (
            table_of(folder, name, schema) for name, schema in (("history", HISTORY), ("seconds", ROLLUP))
        )
        began = replace(seconds.layout, day_of="began")
        return cls(
            detail=detail,
            seconds=seconds,
            topics=Table(Storage(f"{folder}/topics"), topics.TOPICS, seconds.layout),
            episodes=Table(Storage(f"{folder}/episodes"), episodes.EPISODES, began),
        )

    def update(self, requests: Table, run: Run = run_here) -> int:
        """
        Take over what was appended to the table of requests since last time; return how many requests were new.

        Args:
            requests: a table of `quotascope.pipeline.request_log.schema.REQUESTS`.
            run: where the work is done.

        Raises:
            TableError: see `follow`; what was taken over before that stays, and the next update continues from there.

        """
        sums = Follower(self.seconds, rollup, ROLLUP_COLUMNS)
        fragments = Follower(self.episodes, episodes.fragments_of, episodes.COLUMNS)
        charges = Follower(self.detail, history_of, COLUMNS, [sums, fragments])
        traffic = Follower(self.topics, topics.topics_of, topics.COLUMNS)
        new, _ = follow(requests, [charges, traffic], run)
        return new


def table_of(folder: str, name: str, schema: pa.Schema) -> Table:
    """
    Open a table of a folder.

    Raises:
        NoHistory: the folder has none at all, or is not there.
        NoTable: it has others.
        UnreadableTable: its log is damaged.
        UnreachableTable: its log could not be read, as where the folder may not be entered.

    """
    try:
        return Table.open(f"{folder.rstrip('/')}/{name}", schema=schema)
    except NoTable:
        tables_of(folder)  # raises NoHistory
        raise


def tables_of(folder: str) -> dict[str, Table]:
    """
    Return the tables that a folder has, by name.

    Raises:
        NoHistory: it has none, or is not there.
        UnreadableTable: the log of one is damaged.
        UnreachableTable: the log of one could not be read, as where the folder may not be entered.

    """
    found: dict[str, Table] = {}
    for name in NAMES:
        try:
            found[name] = Table.open(f"{folder.rstrip('/')}/{name}")
        except NoTable:
            continue
    if not found:
        raise NoHistory(folder)
    return found
