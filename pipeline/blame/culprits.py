"""
Clients that made others wait: the matrix of culprits and victims of a pool, and the busy times of culprits.

In a busy time a client caused much of the waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import spelled
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.pages.words import brief, shown

from ..replay.compiled import Ints
from .intervals import Group
from .summing import Blame

MOST: Final = 12
"""Largest number of victims, and of culprits, in a heat map; another row and column are for all others."""
BY: Final = ("client", "api", "topic")
"""Kinds of culprits and victims that a matrix can have."""
_CAUSES: Final = 0.25
"""Least part of the other clients' wait in a slot that a client causes in a slot of its busy time."""
_WAITED_NS: Final = 1_000_000
"""
Least mean wait of the other clients in a slot of a busy time.

A shorter one may be due to the resolution of the log and the way to an idle thread.
"""
_LEAST: Final = 0.01
"""Least wait in a busy time that is listed, as a part of the wait in the largest one."""
_PAUSE: Final = 2
"""Largest number of successive slots within a busy time in which the client does not cause that much."""
_LISTED: Final = "others", "not in the log"
"""Labels of the last rows of a matrix; its last column is for others, too."""
_LONGEST_TOPIC: Final = 252
"""
Largest number of characters of a topic, or of `id:` and its id (Kafka: `Topic.MAX_NAME_LENGTH`).

No name may be cut: groups with the same label are added up.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyTime:
    """Time in which a client caused much of the others' waiting."""

    pool: int
    client: int
    begin_us: int
    end_us: int
    held_share: float
    """Part of the pool's handler time that the client held, as a ratio."""
    victims: int
    """Number of other clients that waited for it."""
    wait_ns: int
    """Wait of all victims together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """
    Waits by culprit and victim, ns.

    Culprits and victims with the largest waits come first. The last are `others`, if any, and `not in the log`.
    """

    culprits: Sequence[str]
    victims: Sequence[str]
    has_other_victims: bool
    """True if the last victim is `others`."""
    waits: Sequence[Sequence[int]]
    """Waits by culprit, and then by victim."""
    own_waits: Sequence[int]
    """Waits of each culprit for itself."""


def label_of(by: str, group: Group) -> str:
    """Return a group's client, API or topic."""
    if by == "client":
        return spelled(group.user, group.client_id)
    if by == "topic":
        return shown(group.topic or "no topic", _LONGEST_TOPIC)
    return ApiKey(group.api_key).request_name if group.api_key in set(ApiKey) else f"API {group.api_key}"


def waited(ns: float) -> str:
    """Return a wait in words, such as `3.1 ms`."""
    return brief(ns / 1e9)


def pool_named(name: str) -> str:
    """Return the words for a pool by its name, such as `broker 1`, with control characters escaped."""
    node = name.removesuffix(" controller")
    return f"controller {shown(node)}" if node not in ("", name) else f"broker {shown(name)}"


def matrix_of(result: Blame, pool: int, by: str = "client", limit: int = MOST) -> Matrix:
    """Return the matrix of a pool, with a row and a column for each of the `limit` largest clients, APIs or topics."""
    group_labels = [label_of(by, group) for group in result.plan.head.names]
    labels, label_by_group = np.unique(group_labels, return_inverse=True)
    # `NOT_LOGGED` is -1, and so the index of the last element
    label_numbers = np.append(label_by_group, len(labels))
    parts = of_pool(result.sums.matrix, pool)
    culprits, victims, ns = label_numbers[parts["culprit"]], label_numbers[parts["victim"]], parts["wait_ns"]
    row_labels, row_by_label = _largest(culprits, ns, len(labels), limit)
    column_labels, column_by_label = _largest(victims, ns, len(labels), limit)
    row_by_label[-1] = len(row_labels) + 1  # the last row is for `NOT_LOGGED`, the one before it for others
    waits = np.zeros((len(row_labels) + 2, len(column_labels) + 1), np.int64)
    np.add.at(waits, (row_by_label[culprits], column_by_label[victims]), ns)
    own_waits = np.zeros(len(waits), np.int64)
    np.add.at(own_waits, row_by_label[culprits], np.where(culprits == victims, ns, 0))
    rows, columns = np.full(len(waits), fill_value=True), np.full(waits.shape[1], fill_value=True)
    # every label with a wait has its own row and column, or those of others have a wait
    rows[len(row_labels)], columns[-1] = waits[len(row_labels)].any(), waits[:, -1].any()
    return Matrix(
        culprits=list(compress([*labels[row_labels].tolist(), *_LISTED], rows)),
        victims=list(compress([*labels[column_labels].tolist(), _LISTED[0]], columns)),
        has_other_victims=bool(columns[-1]),
        waits=waits[rows][:, columns].tolist(),
        own_waits=own_waits[rows].tolist(),
    )


def _largest(numbers: Ints, ns: Ints, count: int, limit: int) -> tuple[Ints, Ints]:
    """
    Return the numbers below `count` with the largest sums of ns, and by number up to `count` its place among them.

    All other numbers have the place after the last.
    """
    totals = np.zeros(count + 1, np.int64)
    np.add.at(totals, numbers, ns)
    order = np.argsort(-totals[:count], kind="stable")
    largest = order[totals[order] > 0][:limit]
    places = np.full(count + 1, len(largest))
    places[largest] = np.arange(len(largest))
    return largest, places


def busy_times(result: Blame) -> list[BusyTime]:
    """
    Return all busy times, the one with the largest wait first.

    What a client waits for itself does not count. A pair of pool and client, and a slot, are one number (`keys`), so
    that successive slots of a client are successive numbers.
    """
    plan, waits, loads = result.plan, columns_of(result.sums.timeline), columns_of(result.sums.loads)
    first_slot, clients = plan.begin_us // plan.slot_us, len(plan.head.clients[0])
    # the keys of two clients are further apart than the longest pause within a busy time
    slots = plan.end_us // plan.slot_us - first_slot + 2 + _PAUSE

    def keys(columns: Mapping[str, Ints], client: str) -> Ints:
        """Return the key of each row's pool, client and slot."""
        return (columns["pool"] * clients + columns[client]) * slots + columns["slot"] - first_slot

    def of_other_clients(columns: Mapping[str, Ints], client: str, value: str) -> Ints:
        """Return by key of `candidates` the sum of a value in its pool and slot over all other clients."""
        keys_without_client = columns["pool"] * slots + columns["slot"] - first_slot
        # the pool and the slot in a key of `keys`
        candidate_pools = candidates // slots // clients
        wanted = candidate_pools * slots + candidates % slots
        of_all_clients = _sums(keys_without_client, columns[value], wanted, wanted)
        of_client = _sums(keys(columns, client), columns[value], candidates, candidates)
        return of_all_clients - of_client

    # `candidates` are the keys in which a client caused any wait of others; in the `busy` ones it caused much of it
    for_others = (waits["culprit"] >= 0) & (waits["culprit"] != waits["victim"])
    caused = keys(waits, "culprit")[for_others]
    victims, ns = waits["victim"][for_others], waits["wait_ns"][for_others]
    candidates = np.unique(caused)
    waited_ns = of_other_clients(waits, "victim", "wait_ns")
    requests = of_other_clients(loads, "client", "requests")
    causes_much = _sums(caused, ns, candidates, candidates) >= _CAUSES * waited_ns
    busy = candidates[causes_much & (waited_ns >= _WAITED_NS * requests)]
    # a busy time ends where the client's next busy slot is further away than a pause
    is_border = np.diff(busy, prepend=-slots, append=1 << 62) > 1 + _PAUSE
    first_keys, last_keys = busy[is_border[:-1]], busy[is_border[1:]]
    # the busy time of a wait is the first one that does not end before it, if that has begun by then
    time_by_wait = np.searchsorted(last_keys, caused)
    is_inside = np.append(first_keys, 1 << 62)[time_by_wait] <= caused
    # a busy time and a victim as one number, each pair once
    times_and_victims = np.unique(time_by_wait[is_inside] * clients + victims[is_inside])
    time_by_victim = times_and_victims // clients
    pools, culprits = np.divmod(first_keys // slots, clients)
    begin = np.maximum((first_slot + first_keys % slots) * plan.slot_us, plan.begin_us)
    end = np.minimum((first_slot + last_keys % slots + 1) * plan.slot_us, plan.end_us)
    held_us = _sums(keys(loads, "client"), loads["held_us"], first_keys, last_keys)
    rows = pa.table({
        "pool": pools,
        "client": culprits,
        "begin_us": begin,
        "end_us": end,
        "held_share": held_us / (np.asarray(plan.threads)[pools] * (end - begin)),
        "victims": np.bincount(time_by_victim, minlength=len(first_keys)),
        "wait_ns": _sums(caused, ns, first_keys, last_keys),
    }).sort_by([("wait_ns", "descending")])  # fmt: skip
    return [BusyTime(**row) for row in rows.to_pylist() if row["wait_ns"] >= _LEAST * rows["wait_ns"][0].as_py()]


def _sums(keys: Ints, values: Ints, first_keys: Ints, last_keys: Ints) -> Ints:
    """Return by range the sum of the values whose key is between its first and its last key, both included."""
    order = np.argsort(keys)
    total = np.r_[0, np.cumsum(values[order])]  # the sum of the values before each place
    starts = np.searchsorted(keys, first_keys, sorter=order)
    ends = np.searchsorted(keys, last_keys, "right", sorter=order)
    sums: Ints = total[ends] - total[starts]
    return sums


def columns_of(sums: pa.Table) -> dict[str, Ints]:
    """Return the columns of a table by name."""
    return {name: sums[name].to_numpy() for name in sums.column_names}


def of_pool(sums: pa.Table, pool: int) -> dict[str, Ints]:
    """Return the columns of a table of `Sums`, with the rows of one pool."""
    return columns_of(sums.filter(pc.field("pool") == pool))
