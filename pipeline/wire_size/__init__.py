"""
What a request weighs for the byte-rate quotas, rebuilt from the line that the request log holds about it.

The log leaves the wire size out. It follows from the fields of the line, because the protocol's schema is public
(`common/message/*.json` in kafka-clients): all but the records is fixed by version, names and counts, and of the records the log
tells the size.
"""

from .fetch import fetch_bytes, from_follower
from .produce import produce_bytes
from .share_fetch import share_fetch_bytes

__all__ = ["fetch_bytes", "from_follower", "produce_bytes", "share_fetch_bytes"]
