"""
Kernels whose source runs compiled, if numba is installed, and as plain Python otherwise, with the same figures.

A kernel works on flat columns only, by index. Compiled, they are NumPy arrays; plain, they are lists: Python handles
their items several times as fast. Neither way reassociates floating-point operations: no `fastmath`, no parallel sums.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

_NUMBA: Any = None
with suppress(ImportError):  # the extra `numba` need not be installed
    import numba.extending

    _NUMBA = numba

_COMPILED: Final[dict[object, Any]] = {}
_ASKED: Final[Counter[object]] = Counter()
"""Number of steps of each kernel in this process."""
# Kernels allocate nothing, so no references need be counted; uncounted and inlined they run thirty times as fast.
_PARTS: Final = {
    "_nrt": False,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_WHOLE: Final = {"_nrt": False}

LONG_MAX = 9223372036854775807

P = ParamSpec("P")
R = TypeVar("R")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.int8]


class _Way:
    """Way in which kernels run; tests take both."""

    compiled: bool = _NUMBA is not None
    least_work: int = 200_000
    """Number of steps below which compiling a kernel for the first time takes longer than running it plain."""


WAY: Final = _Way()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function as a part of kernels: compiled kernels call it compiled, Python calls it plain."""
    if _NUMBA is None:
        return function
    marked: Callable[P, R] = _NUMBA.extending.register_jitable(**_PARTS)(function)
    return marked


def run(function: Callable[..., R], *arguments: object, work: int) -> R:
    """
    Call a kernel with arrays, and tuples of arrays; its results are in them afterwards.

    `work` is the approximate number of steps: few are run plain, unless they are many with those of earlier calls.

    A tuple of arrays that a kernel writes to has the class attribute `WRITTEN`; tuples may hold tuples.
    """
    _ASKED[function] += work
    if WAY.compiled and (_ASKED[function] >= WAY.least_work or function in _COMPILED):
        return _compiled(function)(*arguments)
    lists = [_lists(argument) for argument in arguments]
    result = function(*lists)
    _write_back(arguments, lists, written=False)
    return result


def _compiled(function: Callable[..., R]) -> Callable[..., R]:
    """Return the compiled function; it is kept on disk if a directory can be written."""
    if function not in _COMPILED:
        try:
            compiled = _NUMBA.njit(cache=True, **_WHOLE)(function)
            # Else numba looks at the file of this function only, and would reuse what was compiled of older versions of
            # the others.
            compiled._cache._cache_file._source_stamp = _stamp(function)  # noqa: SLF001 - tests guard it
        except RuntimeError:  # no place for a cache, as for modules in an archive
            compiled = _NUMBA.njit(**_WHOLE)(function)
        _COMPILED[function] = compiled
    compiled_function: Callable[..., R] = _COMPILED[function]
    return compiled_function


@cache
def _stamp(function: Callable[..., object]) -> bytes:
    """Return a hash of these sources, and of those beside a kernel's."""
    folders = {Path(__file__).parent, Path(function.__code__.co_filename).parent}
    sources = sorted(source for folder in folders for source in folder.glob("*.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).digest()


def _lists(argument: object) -> object:
    if isinstance(argument, np.ndarray):
        return argument.tolist()
    if isinstance(argument, tuple):
        parts = (_lists(part) for part in argument)
        kind = cast("Callable[..., object]", type(argument))
        return kind(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return argument


def _write_back(arguments: Iterable[object], changed: Iterable[object], *, written: bool) -> None:
    for argument, change in zip(arguments, changed, strict=True):
        if isinstance(argument, tuple) and isinstance(change, tuple):
            marked = getattr(type(argument), "WRITTEN", False)
            _write_back(argument, change, written=marked)
        elif written and isinstance(argument, np.ndarray):
            argument[:] = change


@kernel
def natural(n: int) -> int:
    """
    Return a number that is not negative.

    Compiled code that knows this does not handle Python's indices from the end.
    """
    return n & LONG_MAX


class Heap(NamedTuple):
    """Entries in heap order; of equal times the lower number comes first."""

    times: Ints
    numbers: Ints
    size: Ints
    """One element."""


Heap.WRITTEN = True  # type: ignore[attr-defined]


def new_heap(capacity: int) -> Heap:
    """Return an empty heap with room for `capacity` entries."""
    return Heap(np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(1, np.int64))


@kernel
def push(heap: Heap, time_ms: int, number: int) -> None:
    """Add an entry."""
    place = heap.size[0]
    heap.size[0] = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if not _is_before(time_ms, number, heap.times[parent], heap.numbers[parent]):
            break
        heap.times[place] = heap.times[parent]
        heap.numbers[place] = heap.numbers[parent]
        place = parent
    heap.times[place] = time_ms
    heap.numbers[place] = number


@kernel
def pop(heap: Heap) -> tuple[int, int]:
    """Take the first entry out."""
    first_ms, first_number = heap.times[0], heap.numbers[0]
    size = heap.size[0] - 1
    heap.size[0] = size
    time_ms, number = heap.times[size], heap.numbers[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _is_before(
            heap.times[child + 1], heap.numbers[child + 1], heap.times[child], heap.numbers[child]
        ):
            child += 1
        if not _is_before(heap.times[child], heap.numbers[child], time_ms, number):
            break
        heap.times[place] = heap.times[child]
        heap.numbers[place] = heap.numbers[child]
        place = child
    heap.times[place] = time_ms
    heap.numbers[place] = number
    return first_ms, first_number


@kernel
def _is_before(time_ms: int, number: int, other_ms: int, other_number: int) -> bool:
    return time_ms < other_ms or (time_ms == other_ms and number < other_number)
