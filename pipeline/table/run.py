"""Where pieces of work are done: here, one after the other, or wherever the caller has workers."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Run(Protocol):
    """Does the same with each of some items; `quotascope.pipeline.spark.run` gives one that asks Spark's workers."""

    def __call__(
        self, work: Callable[[Item], Answer], items: Sequence[Item]
    ) -> Iterable[Answer]:
        """Return the answers in the order of the items; both are sent between processes."""


def run_here(work: Callable[[Item], Answer], items: Sequence[Item]) -> Iterable[Answer]:
    """Do it in this process, one after the other."""
    return map(work, items)
