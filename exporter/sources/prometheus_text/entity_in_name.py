"""
Names of metrics that hold the user and the client-id.

The generic rules of jmx_exporter's example ``kafka-kraft-3_0_0.yml`` stand before its quota
rules and take their beans, so that user ``a`` becomes ``kafka_server_produce_user_a_byte_rate``.
Everything but letters and digits is lost on the way: nobody can tell who that was.
"""

from __future__ import annotations

import re
from typing import Final

ADVICE: Final = (
    "move the agent's three quota rules above all rules such as `kafka.server<type=(.+)><>([a-z-]+)`, "
    "or use the rules that `quotascope rules jmx-exporter` writes"
)
_MANGLED: Final = re.compile(
    r"\n(kafka_server_(?:[Pp]roduce|[Ff]etch|[Rr]equest|[Cc]ontroller[Mm]utation)"
    r"_(?:user|client_id)_[a-zA-Z0-9_:]{1,200})"
)


def mangled_name(page: str) -> str | None:
    """The first such name of a page, which begins with a line end."""
    found = _MANGLED.search(page)
    return found and found[1]
