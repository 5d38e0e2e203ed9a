"""The examples in the docstrings are what comes out."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from quotascope.dashboards import expressions, links, scope, steps, variables


@pytest.mark.parametrize("module", [expressions, links, scope, steps, variables], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    """Each shows what it renders."""
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0
