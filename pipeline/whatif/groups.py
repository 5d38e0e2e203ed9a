"""Groups of entities that can meet in a sensor under some candidate: what belongs to one is replayed together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels.compiled import Codes, Ints
from .resolution import Shape

_MOST = 1 << 62


def groups_of(shapes: Sequence[Shape], entities: int) -> Ints:
    """By entity: the smallest number of an entity of its group (connected components over all shapes)."""
    roots = list(range(entities))
    for shape in shapes:
        _join_equal(shape.tags, roots)
    return np.array([_root(roots, entity) for entity in range(entities)], np.int64)


def order_of(groups: Ints, times: Ints) -> Ints:
    """The order of rows by group and then by time, equal ones as they are; quick where they are nearly in it."""
    first, last = int(times.min(initial=0)), int(times.max(initial=0))
    span = last - first + 1
    if (int(groups.max(initial=0)) + 1) * span < _MOST:
        return np.argsort(groups * span + (times - first), kind="stable")
    order: Ints = np.lexsort((times, groups))
    return order


def _join_equal(tags: Codes, roots: list[int]) -> None:
    first: dict[int, int] = {}
    for entity, tag in enumerate(tags.tolist()):
        if tag < 0:
            continue
        other = first.setdefault(tag, entity)
        if other != entity:
            _join(roots, entity, other)


def _join(roots: list[int], one: int, other: int) -> None:
    one, other = _root(roots, one), _root(roots, other)
    roots[max(one, other)] = min(one, other)


def _root(roots: list[int], entity: int) -> int:
    while roots[entity] != entity:
        roots[entity] = roots[roots[entity]]
        entity = roots[entity]
    return entity
