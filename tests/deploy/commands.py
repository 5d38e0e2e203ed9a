"""Commands in the files of `deploy/`, read by the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from quotascope.cli.main import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def options_of_serve(words: Sequence[str]) -> dict[str, Any]:
    """Return the options of `quotascope serve …`; raise click's error for an unknown one."""
    commands = typer.main.get_group(app)
    assert words[0] == "serve"
    context = commands.commands["serve"].make_context("serve", list(words[1:]))
    return {name: value for name, value in context.params.items() if value not in {None, False, ()}}
