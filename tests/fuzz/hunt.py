"""
Fuzzes one target in this process, which ends with it: `python -m tests.fuzz.hunt TARGET [libFuzzer's options]`.

What the options mean is in libFuzzer's documentation; `python -m tests.fuzz` gives useful ones.
"""

import sys
from collections.abc import Callable
from typing import Final

import atheris

from .target import target

_READERS: Final = [
    "quotascope.exporter.api",
    "quotascope.exporter.config",
    "quotascope.exporter.discovery",
    "quotascope.exporter.page.query",
    "quotascope.exporter.sources",
    "quotascope.exporter.web",
    "quotascope.metrics.kafka.jmx",
    "quotascope.quotas",
    "yaml",
]
"""Modules in which atheris follows the path of an input; elsewhere that would only cost time."""


def hunt(prepare: Callable[[], object] = lambda: None) -> None:
    """Fuzz until the options end it or a failing input is found; call ``prepare`` once all is imported."""
    program, name, *options = sys.argv
    with atheris.instrument_imports(include=_READERS):
        feed = target(name).feed
    prepare()
    atheris.Setup([program, *options], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    hunt()
