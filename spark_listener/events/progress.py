"""What a QueryProgressEvent tells of a micro-batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from .fields import Json, part
from .records import OffsetsBehind

_MOST_PHASES = 50


def phases(progress: Json) -> Mapping[str, float]:
    """`durationMs`, in seconds."""
    told = list(part(progress, "durationMs").items())[:_MOST_PHASES]
    return {
        str(phase)[:100]: ms / 1_000
        for phase, ms in told
        if isinstance(ms, int | float) and math.isfinite(ms)
    }


def offsets_behind(sources: Iterable[Json]) -> OffsetsBehind | None:
    """What the Kafka source that is farthest behind tells (KafkaMicroBatchStream.metrics); None where none tells."""
    told = [part(source, "metrics") for source in sources]
    return max(
        (each for each in map(_offsets_behind, told) if each is not None),
        key=lambda each: each.most,
        default=None,
    )


def _offsets_behind(metrics: Json) -> OffsetsBehind | None:
    most = _decimal(metrics.get("maxOffsetsBehindLatest"))
    average = _decimal(metrics.get("avgOffsetsBehindLatest"))
    if most is None or average is None:
        return None
    return OffsetsBehind(most=most, average=average)


def _decimal(found: object) -> float | None:
    """These metrics are texts."""
    try:
        value = float(str(found)[:50])
    except ValueError:
        return None
    return value if math.isfinite(value) else None
