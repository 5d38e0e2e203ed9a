"""Fixtures of tests of the engine."""

import pytest

from quotascope.metrics.engine.registry import Registry


@pytest.fixture
def registry() -> Registry:
    return Registry()
