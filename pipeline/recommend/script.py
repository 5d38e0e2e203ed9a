"""The recommended limits as a script for bash."""

from __future__ import annotations

from typing import Final

from quotascope.quotas import Commands

_HEAD: Final = """\
#!/usr/bin/env bash
# Written by `quotascope recommend`, which has run none of it: read it first. kafka-configs.sh must be on the PATH.
set -euo pipefail
export LC_ALL=C.UTF-8 # for names that are not ASCII: bash and Java read them by the locale
"""


def script_of(commands: Commands) -> str:
    """One command for each entity; comments tell what no command line can say."""
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    return "\n".join((_HEAD, *left_out, *commands.lines, ""))
