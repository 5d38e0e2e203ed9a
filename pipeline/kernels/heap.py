"""What happens next: a binary heap of times and numbers in flat columns."""

from typing import NamedTuple

import numpy as np

from .compiled import Ints, kernel


class Heap(NamedTuple):
    """Entries in heap order; of equal times the lower number comes first."""

    times: Ints
    numbers: Ints
    size: Ints
    """One element."""


Heap.WRITTEN = True  # type: ignore[attr-defined]


def new_heap(most: int) -> Heap:
    """Return an empty heap for so many entries."""
    return Heap(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(1, np.int64)
    )


@kernel
def push(heap: Heap, time_ms: int, number: int) -> None:
    """Add an entry."""
    place = heap.size[0]
    heap.size[0] = place + 1
    while place > 0:
        above = (place - 1) // 2
        if not _is_before(time_ms, number, heap.times[above], heap.numbers[above]):
            break
        heap.times[place] = heap.times[above]
        heap.numbers[place] = heap.numbers[above]
        place = above
    heap.times[place] = time_ms
    heap.numbers[place] = number


@kernel
def pop(heap: Heap) -> tuple[int, int]:
    """Take the first entry out."""
    first_ms, first = heap.times[0], heap.numbers[0]
    size = heap.size[0] - 1
    heap.size[0] = size
    time_ms, number = heap.times[size], heap.numbers[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and _is_before(
            heap.times[below + 1],
            heap.numbers[below + 1],
            heap.times[below],
            heap.numbers[below],
        ):
            below += 1
        if not _is_before(heap.times[below], heap.numbers[below], time_ms, number):
            break
        heap.times[place] = heap.times[below]
        heap.numbers[place] = heap.numbers[below]
        place = below
    heap.times[place] = time_ms
    heap.numbers[place] = number
    return first_ms, first


@kernel
def _is_before(time_ms: int, number: int, other_ms: int, other: int) -> bool:
    return time_ms < other_ms or (time_ms == other_ms and number < other)
