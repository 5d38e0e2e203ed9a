"""What tests of the engine share."""

import pytest

from quotascope.metrics import Registry


@pytest.fixture
def registry() -> Registry:
    return Registry()
