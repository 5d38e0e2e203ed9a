"""The errors of all rooms: one root, and trees in the documentation of their modules that are true."""

import importlib
import re
from pathlib import Path

import pytest

from quotascope.metrics.errors import QuotascopeError

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    "quotascope." + ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for room in (ROOT / ".imports" / "quotascope").iterdir()
    for file in room.resolve().rglob("errors.py")
)
ROOTS = "quotascope.metrics.errors"
"""The module whose tree names the root of each room, of which the others draw what is below."""


def classes_of(module: str) -> dict[str, type[BaseException]]:
    """Return the errors that a module declares."""
    return {
        name: value
        for name, value in vars(importlib.import_module(module)).items()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == module
    }


def drawn(module: str) -> dict[str, str]:
    """Return each error of the tree in a module's documentation, with its base."""
    parents: dict[str, str] = {}
    above: list[str] = []
    column = 0
    for line in (importlib.import_module(module).__doc__ or "").splitlines():
        if root := re.match(r" *([A-Z]\w+)$", line):
            above, column = [root[1]], root.start(1)
        elif branch := re.match(r"[│ ]*[├└]── (\w+)", line):
            above = [*above[: (branch.start(1) - column) // 4], branch[1]]
            parents[branch[1]] = above[-2]
    return parents


@pytest.mark.parametrize("module", MODULES)
def test_every_error_has_the_root(module: str) -> None:
    """A program that catches `QuotascopeError` catches what each room raises."""
    assert all(issubclass(error, QuotascopeError) for error in classes_of(module).values())


@pytest.mark.parametrize("module", [module for module in MODULES if module != ROOTS])
def test_trees_are_true(module: str) -> None:
    """The tree has every error of its module below its base, and no other."""
    parents, classes = drawn(module), classes_of(module)
    assert set(classes) - set(parents.values()) <= set(parents)
    for name, parent in parents.items():
        assert parent in {base.__name__ for base in classes[name].__bases__}, name


def test_the_tree_of_roots_is_true() -> None:
    """The tree of the root names the root of each room."""
    for module in MODULES:
        importlib.import_module(module)
    below = {error.__name__ for error in QuotascopeError.__subclasses__() if error.__module__.startswith("quotascope.")}
    assert set(drawn(ROOTS)) == below
