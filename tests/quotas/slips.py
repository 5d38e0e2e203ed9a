"""Names that differ by a slip from those that are meant."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from urllib.parse import quote

Slip = Callable[[str], str]

SLIPS: dict[str, Slip] = {
    "type": lambda name: f"User:{name}",
    "quotes": lambda name: f'"{name}"',
    "JMX's quotes": lambda name: '"{}"'.format(name.replace("\\", "\\\\").replace('"', '\\"').replace("*", "\\*")),
    "percent": lambda name: quote(name, safe=""),
    "twice": lambda name: quote(quote(name, safe=""), safe=""),
    "leading": lambda name: f"  {name}",
    "trailing": lambda name: f"{name}\n",
    "no-break": lambda name: f"{name}\u00a0",
    "zero width": lambda name: f"{name[:1]}\u200b{name[1:]}",
    "byte order": lambda name: f"\ufeff{name}",
    "filler": lambda name: f"{name}\u3164",
    "NFD": lambda name: unicodedata.normalize("NFD", name),
    "NFC": lambda name: unicodedata.normalize("NFC", name),
    "upper": str.upper,
    "swapped": str.swapcase,
}
