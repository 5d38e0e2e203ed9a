"""
The packages around the modules that tasks import, in the zip.

Each gives way to an installed package of its name, or else is empty. By itself, Python prefers an installed package to
folders without a module in them, but not one that is installed as editable.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

_TRIED = "_quotascope_tried"


def give_way(package: ModuleType) -> None:
    """Replace this package by the one that is installed under its name outside of the archives that it was found in."""
    tried: list[str] = package.__dict__.setdefault(_TRIED, [])
    tried.append(str(package.__file__))
    spec = _elsewhere(package.__name__, tried)
    if spec is not None and spec.loader is not None:
        package.__spec__ = spec
        package.__file__ = spec.origin
        package.__path__ = list(spec.submodule_search_locations or ())
        spec.loader.exec_module(package)  # an archive's package would give way in turn


def _elsewhere(name: str, tried: list[str]) -> ModuleSpec | None:
    """Return the spec of an installed package that is none of those at the paths `tried`; None without one."""
    parent = sys.modules[name.rpartition(".")[0]]
    path = [folder for folder in parent.__path__ if not any(file.startswith(folder) for file in tried)]
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find and find(name, path)
        if spec is not None and spec.has_location:
            return spec
    return None
