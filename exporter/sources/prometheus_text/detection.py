"""Which dialect a page is in."""

from __future__ import annotations

from typing import Final

from .dialect import LineBeginnings, TextDialect
from .dialects import DIALECTS

_KAFKA: Final = LineBeginnings(("kafka_",))


def detected(page: str) -> TextDialect | None:
    """The dialect of a page, which begins with a line end; None when it shows none."""
    return next((dialect for dialect in DIALECTS if dialect.is_in(page)), None)


def is_kafka(page: str) -> bool:
    """Whether there is any metric of Kafka in a page, which begins with a line end."""
    return _KAFKA.are_in(page)
