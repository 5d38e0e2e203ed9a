"""
Partitions by topic, as somebody wrote them down before the log began.

JSON, an object of topic and number of partitions: `{"orders": 12, "payments": 6}`.
"""

from pathlib import Path

import msgspec

from ..errors import BadSnapshot


def read_snapshot(path: str | Path) -> dict[str, int]:
    """Partitions by topic. Raises `BadSnapshot`."""
    try:
        content = Path(path).read_bytes()
        return msgspec.json.decode(content, type=dict[str, int])
    except (OSError, msgspec.MsgspecError) as error:
        raise BadSnapshot(str(path), str(error)) from error
