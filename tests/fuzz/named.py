"""The targets by their names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

from .target import Target

_FOLDER: Final = Path(__file__).parent / "targets"
NAMES: Final = tuple(sorted(path.stem for path in _FOLDER.glob("*.py")))
"""Each file in `targets` is one."""


def target(name: str) -> Target:
    """The target of this name; nothing is imported that another one reads with."""
    found = import_module(f"tests.fuzz.targets.{name}").TARGET
    assert isinstance(found, Target)
    return found
