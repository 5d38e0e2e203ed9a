"""
Clients that made others wait.

They are shown as the matrix of culprits and victims of a broker, and the times in which a client caused much of the
waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""Number of victims, and of culprits, in a heat map; one more stands for all others."""
BY: Final = ("client", "api", "topic")
_CAUSES: Final = 0.25
"""Part of the others' waiting in a slot from which on a client makes it a busy time."""
_WAITED_NS: Final = 1_000_000
"""
Least mean wait of others in a slot of a busy time.

A shorter one is no more than the log's clock and the way to an idle thread.
"""
_LEAST: Final = 0.01
"""Least waiting in a busy time, as a part of that in the largest one."""
_PAUSE: Final = 2
"""Number of slots in a row without so much waiting that do not end a busy time."""
_LISTED: Final = "others", "not in the log"
_LONGEST_TOPIC: Final = 252
"""
Number of characters of a topic with `id:`: no name may be cut, as labels are summed (Kafka: `Topic.MAX_NAME_LENGTH`).
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
    Waits by culprit and victim, ns; the largest first.

    The last culprits are `others` and `not in the log`, the last victim `others`.
    """

    culprits: Sequence[str]
    victims: Sequence[str]
    waits: Sequence[Sequence[int]]
    """Waits by culprit and victim."""
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
    """Return a wait in three digits, such as `3.1 ms`."""
    return brief(ns / 1e9)


def pool_named(name: str) -> str:
    """Return the node of a pool of handler threads, with the name's control characters escaped."""
    node, _, controller = name.rpartition(" controller")
    return f"controller {shown(node)}" if not controller and node else f"broker {shown(name)}"


def matrix_of(result: Blame, pool: int, by: str = "client", limit: int = MOST) -> Matrix:
    """Return the waits of a pool by one of `BY`."""
    named = [label_of(by, group) for group in result.plan.head.names]
    labels, of_groups = np.unique(named, return_inverse=True)
    # group number -1 is `NOT_LOGGED`, and as an index the last place
    numbers = np.append(of_groups, len(labels))
    parts = of_pool(result.sums.matrix, pool)
    culprits, victims, ns = numbers[parts["culprit"]], numbers[parts["victim"]], parts["wait_ns"]
    rows, of_rows = _largest(culprits, ns, len(labels), limit)
    columns, of_columns = _largest(victims, ns, len(labels), limit)
    of_rows[-1] = len(rows) + 1
    waits = np.zeros((len(rows) + 2, len(columns) + 1), np.int64)
    np.add.at(waits, (of_rows[culprits], of_columns[victims]), ns)
    own_waits = np.zeros(len(waits), np.int64)
    np.add.at(own_waits, of_rows[culprits], np.where(culprits == victims, ns, 0))
    return Matrix(
        culprits=[*labels[rows].tolist(), *_LISTED],
        victims=[*labels[columns].tolist(), _LISTED[0]],
        waits=waits.tolist(),
        own_waits=own_waits.tolist(),
    )


def _largest(numbers: Ints, ns: Ints, count: int, limit: int) -> tuple[Ints, Ints]:
    """
    Return the numbers with most ns, and the place of each number among these.

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
    """Return all busy times, the one with most waiting first; a client's own waits do not count."""
    plan, waits, loads = result.plan, columns_of(result.sums.timeline), columns_of(result.sums.loads)
    first_slot, clients = plan.begin_us // plan.slot_us, len(plan.head.clients[0])
    # the gap between the slots of two clients is a pause that ends a busy time
    slots = plan.end_us // plan.slot_us - first_slot + 2 + _PAUSE

    def keys(columns: Mapping[str, Ints], client: str) -> Ints:
        """Return a key for each pool, client and slot; the slots of a client follow each other."""
        return (columns["pool"] * clients + columns[client]) * slots + columns["slot"] - first_slot

    def of_others(columns: Mapping[str, Ints], client: str, value: str) -> Ints:
        """Return for each of `places` the sum over all clients except the client there."""
        of_slots = columns["pool"] * slots + columns["slot"] - first_slot
        places_of_all = places // slots // clients * slots + places % slots
        of_all = _sums(of_slots, columns[value], places_of_all, places_of_all)
        return of_all - _sums(keys(columns, client), columns[value], places, places)

    by_others = (waits["culprit"] >= 0) & (waits["culprit"] != waits["victim"])
    caused, victims, ns = (column[by_others] for column in (keys(waits, "culprit"), waits["victim"], waits["wait_ns"]))
    places = np.unique(caused)
    waited_ns, requests = of_others(waits, "victim", "wait_ns"), of_others(loads, "client", "requests")
    busy_places = places[
        (_sums(caused, ns, places, places) >= _CAUSES * waited_ns) & (waited_ns >= _WAITED_NS * requests)
    ]
    cuts = np.diff(busy_places, prepend=-slots, append=1 << 62) > 1 + _PAUSE
    from_, to = busy_places[cuts[:-1]], busy_places[cuts[1:]]
    numbers = np.searchsorted(to, caused)
    inside = np.append(from_, 1 << 62)[numbers] <= caused
    pairs = np.unique(numbers[inside] * clients + victims[inside])
    pools, of_clients = np.divmod(from_ // slots, clients)
    begin = np.maximum((first_slot + from_ % slots) * plan.slot_us, plan.begin_us)
    end = np.minimum((first_slot + to % slots + 1) * plan.slot_us, plan.end_us)
    held_us = _sums(keys(loads, "client"), loads["held_us"], from_, to)
    rows = pa.table({
        "pool": pools,
        "client": of_clients,
        "begin_us": begin,
        "end_us": end,
        "held_share": held_us / (np.asarray(plan.threads)[pools] * (end - begin)),
        "victims": np.bincount(pairs // clients, minlength=len(from_)),
        "wait_ns": _sums(caused, ns, from_, to),
    }).sort_by([("wait_ns", "descending")])  # fmt: skip
    return [BusyTime(**row) for row in rows.to_pylist() if row["wait_ns"] >= _LEAST * rows["wait_ns"][0].as_py()]


def _sums(keys: Ints, values: Ints, from_: Ints, to: Ints) -> Ints:
    """Return the sums of the values with keys from each of `from_` to each of `to`."""
    order = np.argsort(keys)
    total = np.r_[0, np.cumsum(values[order])]
    ends = np.searchsorted(keys, to, "right", sorter=order)
    sums: Ints = total[ends] - total[np.searchsorted(keys, from_, sorter=order)]
    return sums


def columns_of(sums: pa.Table) -> dict[str, Ints]:
    """Return the columns of a table by name."""
    return {name: sums[name].to_numpy() for name in sums.column_names}


def of_pool(sums: pa.Table, pool: int) -> dict[str, Ints]:
    """Return the columns of a pool."""
    return columns_of(sums.filter(pc.field("pool") == pool))
