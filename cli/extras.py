"""The extra of each command: its libraries are not installed with the others (docs/decisions/0020)."""

from __future__ import annotations

import sys
from typing import NoReturn

from quotascope.clients.errors import LibraryMissing

_EXTRAS = {
    "spark": "spark,cli",
    "dashboards": "dashboards",
    "alerts mixin": "dashboards",
}
_PIPELINE = ("ingest", "whatif", "recommend", "history")


def fail(message: str) -> NoReturn:
    """End the process with one message and exit code 1."""
    sys.stderr.write(f"quotascope: {message}\n")
    sys.exit(1)


def fail_without(library: str) -> NoReturn:
    """Say what to install for the command of this process, which lacks that library."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    command = " ".join(words[:1])
    extra = _EXTRAS.get(" ".join(words[:2])) or _EXTRAS.get(command, "exporter")
    # with the command line, `check_extra` has found the others; what is left reads a cluster's quotas
    if command in _PIPELINE and library == "typer":
        extra = "pipeline"
    fail(str(LibraryMissing(library.partition(".")[0], extra)))
