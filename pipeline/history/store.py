"""
History on disk: committed tables in a folder, and their upkeep.

`history` holds one row a request, `seconds` its sums, `episodes` its throttle episodes, `topics` the bytes by topic,
`connections` the numbers of requests by connection. `history`, `topics` and `connections` follow the table of requests,
the others follow `history`: each appended row is taken over exactly once, late requests included.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, Self

import pyarrow as pa

from .. import episodes, topics
from ..errors import ChangedRows, NoHistory, NoTable, UnreadableTable
from ..names import NAMES
from ..table import Cleaned, Follower, Map, Table, follow, following
from ..table.storage import SHARDS, Storage, by_user
from . import connections
from .charges import COLUMNS, ROLLUP_COLUMNS, history_of, rollup
from .connections import CONNECTIONS, connections_of
from .schema import HISTORY, ROLLUP


class Made(NamedTuple):
    """A table that is made of another one's rows."""

    source: str
    make: Callable[[pa.Table], pa.Table]
    columns: Sequence[str]
    """Columns of the source that `make` needs."""
    schema: pa.Schema
    """Columns of the table."""

    def follower(self, table: Table, followers: Sequence[Follower] = ()) -> Follower:
        """Return the table as a follower of its source."""
        return Follower(table, self.make, self.columns, followers)


MADE: Final = {
    "history": Made("requests", history_of, COLUMNS, HISTORY),
    "topics": Made("requests", topics.topics_of, topics.COLUMNS, topics.TOPICS),
    "connections": Made("requests", connections_of, connections.COLUMNS, CONNECTIONS),
    "seconds": Made("history", rollup, ROLLUP_COLUMNS, ROLLUP),
    "episodes": Made("history", episodes.fragments_of, episodes.COLUMNS, episodes.EPISODES),
}
"""Recipes of tables that are made of others, a source before its followers."""


@dataclass(frozen=True, kw_only=True)
class History:
    """The tables of a usage history."""

    detail: Table
    """One row a request (`HISTORY`)."""
    seconds: Table
    """Sums (`ROLLUP`); a key may have several rows, which add up."""
    topics: Table
    """Bytes by topic (`TOPICS`); missing if the first ingest was interrupted."""
    connections: Table
    """Requests by connection (`CONNECTIONS`); missing as above."""
    episodes: Table
    """Fragments of throttle episodes (`EPISODES`); missing as above."""

    @classmethod
    def create(cls, folder: str, shards: int = SHARDS) -> Self:
        """
        Create the tables of a history, or open them if they exist.

        Args:
            folder: a path or URI; each table is a folder in it.
            shards: number of shards that users are spread over; cannot be changed later.

        Raises:
            TableError: they cannot be created, or have other columns.

        """
        layout = partial(by_user, shards)
        detail, sums = layout("timestamp"), layout("start")
        return cls(
            detail=Table.create(f"{folder}/history", HISTORY, detail),
            seconds=Table.create(f"{folder}/seconds", ROLLUP, sums),
            topics=Table.create(f"{folder}/topics", topics.TOPICS, sums),
            connections=Table.create(f"{folder}/connections", CONNECTIONS, sums),
            episodes=Table.create(f"{folder}/episodes", episodes.EPISODES, layout("began")),
        )

    @classmethod
    def open(cls, folder: str) -> Self:
        """
        Open the tables of a history.

        Raises:
            NoHistory: the folder has no table.
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
            connections=Table(Storage(f"{folder}/connections"), CONNECTIONS, seconds.layout),
            episodes=Table(Storage(f"{folder}/episodes"), episodes.EPISODES, began),
        )

    def update(self, requests: Table, map_items: Map = map) -> int:
        """
        Take over the rows that the table of requests got since the last update; return the number of new requests.

        Args:
            requests: a table of `quotascope.pipeline.request_log.schema.REQUESTS`.
            map_items: maps the work over files: `map`, or that of an engine.

        Raises:
            TableError: see `follow`; rows that were taken over before the error stay, and the next update continues
                there.

        """
        of_history = [MADE["seconds"].follower(self.seconds), MADE["episodes"].follower(self.episodes)]
        followers = [
            MADE["history"].follower(self.detail, of_history),
            MADE["topics"].follower(self.topics),
            MADE["connections"].follower(self.connections),
        ]
        new, *_ = follow(requests, followers, map_items)
        return new


def table_of(folder: str, name: str, schema: pa.Schema) -> Table:
    """
    Open a table of a folder.

    Raises:
        NoHistory: the folder has no table, or does not exist.
        NoTable: it has other tables.
        UnreadableTable: its log is damaged.
        UnreachableTable: its log could not be read, for example for want of permission.

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
        NoHistory: the folder has no table, or does not exist.
        UnreadableTable: the log of one is damaged.
        UnreachableTable: the log of one could not be read, for example for want of permission.

    """
    tables: dict[str, Table] = {}
    for name in NAMES:
        try:
            tables[name] = Table.open(f"{folder.rstrip('/')}/{name}")
        except NoTable:
            continue
    if not tables:
        raise NoHistory(folder)
    return tables


def clean(folder: str, older_than_hours: int = 24) -> dict[str, Cleaned]:
    """
    Delete files that no table of a folder lists any more, and commits of over 30 days ago; return the results by table.

    Files of running writers stay (`Table.clean`), and compacted files whose rows a follower has not taken over yet.

    Args:
        folder: folder of the history.
        older_than_hours: must exceed the duration of any read.

    Raises:
        TableError: a table cannot be read or written to.

    """
    tables = tables_of(folder)
    cleaned: dict[str, Cleaned] = {}
    for name, table in tables.items():
        followers = [
            tables[follower] for follower, recipe in MADE.items() if recipe.source == name and follower in tables
        ]
        cleaned[name] = table.clean(older_than_hours, partial(_not_taken_over, table, followers))
        if all(follower.last_epoch(following(table)) == table.version for follower in followers):
            table.forget()
    return cleaned


def _not_taken_over(source: Table, followers: Sequence[Table]) -> Iterator[str]:
    """
    Yield the paths of files with rows that followers have not taken over yet.

    A follower that cannot continue has none.
    """
    for follower in followers:
        with suppress(UnreadableTable, ChangedRows):
            _, files = source.added_since(follower.last_epoch(following(source)))
            yield from (file.path for file in files)
