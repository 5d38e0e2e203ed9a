"""The examples in the docstrings of the builders are what they render."""

import doctest
from types import ModuleType

import pytest

from quotascope.alerts import links, promql, recorded


@pytest.mark.parametrize("module", [links, promql, recorded], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    """Each builder shows its PromQL, and that is what comes out."""
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0
