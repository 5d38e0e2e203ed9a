"""What tells that a server would answer if it was asked for less, of queries and of remote read alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quotascope.exporter.errors import SourceError

_TOO_LARGE: Final = (
    "too many samples",
    "exceed",
    "timed out",
    "timeout",
    "too long",
    "longer than",
    "limit",
    "in time",
)
"""Words of servers that give up a query for its size; a smaller one may be answered."""


def is_too_large(error: SourceError) -> bool:
    """Return whether a server may answer if it is asked for less: the answer was too long or late, or it says so."""
    from quotascope.exporter.errors import AnswerLate, AnswerTooLong, SourceUnreadable

    if isinstance(error, AnswerLate | AnswerTooLong):
        return True
    text = str(error).lower()
    # 429 is a limit on the number of requests, not on their size; 3xx names an address, which may have any word
    may_be_size = isinstance(error, SourceUnreadable) and not text.startswith(("http 429", "http 3"))
    return may_be_size and any(word in text for word in _TOO_LARGE)
