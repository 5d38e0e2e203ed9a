"""What the package offers."""

import ast
import inspect
from pathlib import Path

from quotascope import metrics


def test_all_is_complete_and_sorted() -> None:
    """Whatever the package's face imports is public, and nothing else is there."""
    tree = ast.parse(Path(inspect.getfile(metrics)).read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(metrics.__all__) == imported
    assert len(set(metrics.__all__)) == len(metrics.__all__)


def test_every_public_class_is_offered() -> None:
    """A class that is public in its module of the engine's core is public in the package."""
    missing = [
        f"{module}.{name}"
        for module in CORE
        for name in public_classes(module)
        if name not in metrics.__all__
    ]
    assert missing == []


CORE = (
    "config",
    "cumulative",
    "errors",
    "expiry",
    "frequencies",
    "histogram",
    "jmx_reporter",
    "meter",
    "metric_name",
    "percentiles",
    "quota",
    "rate",
    "registry",
    "reporter",
    "sampled",
    "sensor",
    "stat",
    "token_bucket",
    "windowed",
)


def public_classes(module: str) -> list[str]:
    """Return the names of the classes that a module defines, without the private ones."""
    path = Path(inspect.getfile(metrics)).with_name(f"{module}.py")
    tree = ast.parse(path.read_text())
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
