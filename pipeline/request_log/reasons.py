"""Why a line went to quarantine."""

from enum import StrEnum


class Reason(StrEnum):
    """One of a few words, so that lines can be counted by them; the detail says what exactly."""

    EMPTY = "empty"
    """Nothing but white space."""
    NOT_A_REQUEST = "not a request"
    """Another logger's line, or the rest of one that spans several."""
    OLD_LAYOUT = "layout before 2.8"
    """The text of brokers before KIP-673, which is no JSON."""
    NO_TIME = "no time"
    """Nothing in front of the request tells when it was."""
    TRUNCATED = "truncated"
    """The line ends in the middle, as the last one of a file may."""
    NOT_JSON = "not JSON"
    """What follows is broken in another way."""
    UNKNOWN_SHAPE = "unknown shape"
    """A field is missing, or holds what it never should."""
    UNKNOWN_VERSION = "unknown version"
    """A version of Produce or Fetch whose size cannot be told, because this release does not know it."""
    TOO_LONG = "too long"
    """More bytes than a line may have."""


class Unreadable(Exception):
    """A line that is not a request; private to this package, which makes a row of the quarantine of it."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
