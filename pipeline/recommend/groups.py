"""The requests that one sensor of one broker would measure under rules of a shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.metrics import QuotaEntity

from .policy import Shape

NAMES: Final = {
    Shape.USER: ("user",),
    Shape.CLIENT: ("client_id",),
    Shape.PAIR: ("user", "client_id"),
}
"""What the requests of an entity have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Requests that would share a quota."""

    broker: str
    entity: QuotaEntity
    rows: pa.Table
    """Of history, in order of their decisions."""


CONTROLLER: Final = "controller"
"""Stands for the broker where mutations are measured: all that a cluster gets go to the active controller."""


def groups(history: pa.Table, shape: Shape) -> Iterator[Group]:
    """
    Cut history into groups of one broker.

    A client-id that is empty has no group where rules name client-ids: no rule can.

    Args:
        history: whole groups; their rows may be in any order.
        shape: of the rules.

    """
    yield from _cut(history, shape, ("broker", *NAMES[shape]))


def mutating_groups(history: pa.Table, shape: Shape) -> Iterator[Group]:
    """Cut the requests that mutate topics into groups of all brokers; otherwise as `groups`."""
    mutating = history.filter(pc.is_valid(history.column("mutations")))
    for group in _cut(mutating, shape, NAMES[shape]):
        yield replace(group, broker=CONTROLLER)


def _cut(history: pa.Table, shape: Shape, names: Sequence[str]) -> Iterator[Group]:
    if "client_id" in names:
        named = pc.not_equal(history.column("client_id"), pa.scalar(""))
        history = history.filter(named)
    if history.num_rows == 0:
        return
    codes = np.stack([_codes(history.column(name)) for name in names])
    order = np.lexsort((history.column("timestamp").to_numpy(), *codes))
    ordered = history.take(order)
    changed = np.any(np.diff(codes[:, order], axis=1) != 0, axis=0)
    starts = [0, *(np.flatnonzero(changed) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], history.num_rows], strict=True):
        rows = ordered.slice(start, end - start)
        yield Group(broker=rows["broker"][0].as_py(), entity=_entity(rows, shape), rows=rows)  # fmt: skip


def _codes(column: Any) -> NDArray[np.int32]:  # noqa: ANN401 - the stubs know no encoded columns
    codes: NDArray[np.int32] = column.combine_chunks().dictionary_encode().indices.to_numpy()  # fmt: skip
    return codes


def _entity(rows: pa.Table, shape: Shape) -> QuotaEntity:
    return QuotaEntity(**{name: rows[name][0].as_py() for name in NAMES[shape]})
