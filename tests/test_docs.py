"""The generated pages in docs/ are what the code would write."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location(
        "generate_docs", ROOT / "tools" / "generate_docs.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["alerts.md", "configuration.yaml", "metrics.md"])
def test_page_is_up_to_date(generator: ModuleType, name: str) -> None:
    """A change of the catalogue or of the configuration's models is followed by ``make docs``."""
    page = ROOT / "docs" / name
    assert page.read_text(encoding="utf-8") == generator.pages()[page], "run: make docs"
