"""Addresses that people type."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_HOST: Final = re.compile(r"[^\s\x00-\x20\x7f]+")
"""A host; `urlsplit` takes blanks for a part of one, a request does not."""


def http_parts(url: str) -> SplitResult | None:
    """
    Return the parts of an address that HTTP can ask; None for any other text.

    >>> http_parts("http://quotascope:9749/x").path
    '/x'
    >>> [http_parts(text) for text in ("quotascope:9749", "http://a b", "http://a:0", "http://a:99999", "http://[::1")]
    [None, None, None, None, None]
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # the port is no number, or a bracket is open
        return None
    return parts if usable and _HOST.fullmatch(parts.hostname or "") else None
