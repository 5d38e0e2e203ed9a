"""The commands of quotascope, each with its help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from quotascope.cli.main import app


def commands_of(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command and those below it, each with its name."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands_of(inner, f"{path} {name}")


APP = typer.main.get_command(app)

COMMANDS = [(path, each) for path, each in commands_of(APP, "quotascope") if not hasattr(each, "commands")]
