"""Work in parts, done by this process or by Spark's workers."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and of how much (0 if that is unknown)."""


class Run(Protocol):
    """Does the same with each of some items; `quotascope.pipeline.spark.run` gives one that asks Spark's workers."""

    def __call__(
        self, work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
    ) -> Iterable[Answer]:
        """Return the answers in the order of the items; both are sent between processes. Progress is in items."""


def run_here(
    work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
) -> Iterable[Answer]:
    """Do it in this process, one after the other."""
    for done, item in enumerate(items, start=1):
        yield work(item)
        if progress is not None:
            progress(done, len(items))
