"""Lines, progress and files of benchmarks."""

import json
from pathlib import Path
from typing import Final

from rich.console import Console

STDERR: Final = Console(stderr=True)
"""Where progress is shown."""
say: Final = Console(highlight=False, markup=False, soft_wrap=True).print
"""Print a line as it is."""


def write_json(file: Path | None, content: object) -> None:
    """Write results to a file, where one was asked for."""
    if file is not None:
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
