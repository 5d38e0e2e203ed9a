"""Asks an exporter for its page."""

from __future__ import annotations

import time
from typing import Final

from ..errors import SourceDenied
from ..limits import Limits
from ..snapshot import Snapshot
from ..sources.fetch import HttpFetch, HttpTarget
from .snapshot import snapshot_of_page

_HINT: Final = (
    "is this the address of `quotascope serve`, such as http://quotascope:9749?"
)
_LOGIN: Final = "for this exporter: --exporter-user, --exporter-password-file, --exporter-ca-file, --exporter-cert-file"


async def read_exporter(target: HttpTarget, limits: Limits | None = None) -> Snapshot:
    """What an exporter shows now. Raises ``SourceError``; ``limits`` as for ``snapshot_of_page``."""
    fetch = HttpFetch(target, _HINT)
    try:
        answer = await fetch.read()
    except SourceDenied as error:
        raise SourceDenied(f"{target.url}: {error} ({_LOGIN})") from error
    finally:
        await fetch.close()
    return snapshot_of_page(answer, time.time(), limits)
