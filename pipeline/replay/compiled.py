"""
Kernels, whose source runs compiled if numba is installed, and otherwise as plain Python, with the same results.

A kernel works on flat columns only, by index. A compiled kernel gets NumPy arrays, and a plain one gets lists, because
Python handles the items of lists several times as fast. Neither reassociates floating-point operations: no `fastmath`,
no parallel sums.
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
_STEPS: Final[Counter[object]] = Counter()
"""Number of steps that each kernel was called for in this process."""
# Kernels allocate nothing, so no references need be counted; uncounted and inlined they run thirty times as fast.
_INNER_OPTIONS: Final = {
    "_nrt": False,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Options of numba for a function that kernels call."""
_OUTER_OPTIONS: Final = {"_nrt": False}
"""Options of numba for a kernel that `run` calls."""

LONG_MAX = 9223372036854775807

P = ParamSpec("P")
R = TypeVar("R")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.int8]


class _Way:
    """Way in which kernels run, which tests change."""

    compiled: bool = _NUMBA is not None
    """True if kernels may run compiled."""
    least_work: int = 200_000
    """Number of steps below which compiling a kernel for the first time takes longer than running it plain."""


WAY: Final = _Way()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that kernels call: a compiled kernel calls it compiled, and Python calls it plain."""
    if _NUMBA is None:
        return function
    marked: Callable[P, R] = _NUMBA.extending.register_jitable(**_INNER_OPTIONS)(function)
    return marked


def run(function: Callable[..., R], *arguments: object, work: int) -> R:
    """
    Call a kernel, and return its result.

    Args:
        function: the kernel.
        arguments: numbers, arrays, and tuples of arrays or of tuples. The kernel changes the arrays in a tuple whose
            class has the attribute `WRITTEN`.
        work: approximate number of steps. The kernel runs plain until the steps of all its calls are worth compiling.

    """
    _STEPS[function] += work
    if WAY.compiled and (_STEPS[function] >= WAY.least_work or function in _COMPILED):
        return _compiled(function)(*arguments)
    lists = [_lists(argument) for argument in arguments]
    result = function(*lists)
    _write_back(arguments, lists, written=False)
    return result


def _compiled(function: Callable[..., R]) -> Callable[..., R]:
    """Return the compiled function; numba caches it on disk if it can write to a directory."""
    if function not in _COMPILED:
        try:
            compiled = _NUMBA.njit(cache=True, **_OUTER_OPTIONS)(function)
            # Otherwise numba only looks at the file of this function, and would reuse a kernel that was compiled with
            # older versions of the functions that it calls.
            compiled._cache._cache_file._source_stamp = _stamp(function)  # noqa: SLF001 - tests guard it
        except RuntimeError:  # no place for a cache, as for modules in an archive
            compiled = _NUMBA.njit(**_OUTER_OPTIONS)(function)
        _COMPILED[function] = compiled
    compiled_function: Callable[..., R] = _COMPILED[function]
    return compiled_function


@cache
def _stamp(function: Callable[..., object]) -> bytes:
    """Return a hash of all sources in this folder, and in the folder of a kernel."""
    folders = {Path(__file__).parent, Path(function.__code__.co_filename).parent}
    sources = sorted(source for folder in folders for source in folder.glob("*.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).digest()


def _lists(argument: object) -> object:
    """Return an argument of a kernel with lists in place of arrays, also within tuples."""
    if isinstance(argument, np.ndarray):
        return argument.tolist()
    if isinstance(argument, tuple):
        parts = (_lists(part) for part in argument)
        kind = cast("Callable[..., object]", type(argument))
        return kind(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return argument


def _write_back(arguments: Iterable[object], lists: Iterable[object], *, written: bool) -> None:
    """Copy lists to the arrays that they were made of, if the arrays are `written`, or in a tuple that is."""
    for argument, items in zip(arguments, lists, strict=True):
        if isinstance(argument, tuple) and isinstance(items, tuple):
            marked = getattr(type(argument), "WRITTEN", False)
            _write_back(argument, items, written=marked)
        elif written and isinstance(argument, np.ndarray):
            argument[:] = items


@kernel
def natural(n: int) -> int:
    """
    Return `n`, which must not be negative.

    The mask lets the compiler see that, so that it leaves out Python's handling of negative indices.
    """
    return n & LONG_MAX


class Heap(NamedTuple):
    """Entries in heap order, by time and then by number."""

    times: Ints
    numbers: Ints
    size: Ints
    """Number of entries, as an array of one element."""


Heap.WRITTEN = True  # type: ignore[attr-defined]


def new_heap(capacity: int) -> Heap:
    """Return an empty heap with room for `capacity` entries."""
    return Heap(np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(1, np.int64))


@kernel
def push(heap: Heap, time_ms: int, number: int) -> None:
    """Add an entry at the end, and move it up before each entry that comes after it."""
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
    """
    Take the first entry out, and return its time and number.

    The last entry moves to the front, and then down below each entry that comes before it.
    """
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
    """Return whether an entry comes before another one: by time, and then by number."""
    return time_ms < other_ms or (time_ms == other_ms and number < other_number)
