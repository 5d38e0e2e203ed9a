"""The recommended limits as a script for bash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quotascope.quotas import Commands

_HEAD: Final = """\
#!/usr/bin/env bash
# Written by `quotascope recommend`, which has run none of it: read it first. kafka-configs.sh must be on the PATH.
set -euo pipefail
export LC_ALL=C.UTF-8 # for names that are not ASCII: bash and Java read them by the locale
"""


def script_of(commands: Commands, caveats: Sequence[str] = ()) -> str:
    """One command for each entity; comments hold what no command line can say, and what the limits were made of."""
    made_of = (f"# {sentence}" for sentence in caveats)
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    return "\n".join((_HEAD, *made_of, *left_out, *commands.lines, ""))
