"""Both ways in which kernels run."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quotascope.pipeline.replay.compiled import WAY

WAYS = ("compiled", "plain")


@contextmanager
def kernels(way: str) -> Iterator[None]:
    """Run kernels compiled, however little there is to do, or as the Python that they are written in."""
    assert WAY.compiled, "numba is missing"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WAY, "compiled", way == "compiled")
        patch.setattr(WAY, "least_work", 0)
        yield
