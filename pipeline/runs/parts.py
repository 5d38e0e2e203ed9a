"""The files of a history that belong together, and how far the work on them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ..table import File, Table

Answer = TypeVar("Answer")
Progress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


def parts_of(history: Table, *, across_users: bool) -> Sequence[Sequence[File]]:
    """The files of each bucket of users; all of them together where users meet."""
    buckets = list(history.buckets().values())
    if across_users and buckets:
        return [[file for bucket in buckets for file in bucket]]
    return buckets


def told(
    answers: Iterable[Answer], count: int, progress: Progress | None
) -> Iterator[Answer]:
    """Pass answers on, and tell how many there were."""
    for done, answer in enumerate(answers, start=1):
        yield answer
        if progress is not None:
            progress(done, count)
