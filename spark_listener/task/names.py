"""Names of strangers, cut to a length that can be sent."""

from __future__ import annotations

import hashlib

_MOST = 200
"""Characters of a user's or a client's name that are kept."""


def clipped(name: str) -> str:
    """The same, or its beginning and a checksum of the whole: long names stay apart, and are the same wherever they are cut."""
    if len(name) <= _MOST:
        return name
    checksum = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{name[: _MOST - len(checksum) - 1]}~{checksum}"
