"""What tests of the engine share."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.metrics.produce_engine import Engine
from tests.metrics.threads import THREADS

from quotascope.metrics import Registry


@pytest.fixture
def registry() -> Registry:
    """An empty registry."""
    return Registry()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads whose errors are not lost."""
    with ThreadPoolExecutor(THREADS) as pool:
        yield pool


@pytest.fixture
def engine() -> Engine:
    """An engine without rules."""
    return Engine()
