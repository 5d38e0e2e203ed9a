"""Work of fixtures that takes Python seconds, and under coverage's tracer four times as many."""

from collections.abc import Iterator
from contextlib import contextmanager

from coverage import Coverage


@contextmanager
def untraced() -> Iterator[None]:
    """Meanwhile no line counts as covered."""
    coverage = Coverage.current()
    if coverage is None:
        yield
        return
    coverage.stop()
    try:
        yield
    finally:
        coverage.start()
