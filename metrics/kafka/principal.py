"""Senders of requests, with the spelling of Kafka's metrics."""

from typing import Final

from .sanitizer import desanitize, sanitize


class Principal:
    """
    An authenticated user (Kafka: the principal and `sanitizedUser` of a `Session`).

    The one place where names are sanitized: rules and look-ups use `name`, tags and sensor names use `sanitized`.
    Make one per connection, not per request.

    Args:
        name: the principal's name as people write it, such as `CN=app,O=Org`.
        sanitized: its tag, where that is given.

    """

    __slots__ = ("name", "sanitized")

    def __init__(self, name: str, sanitized: str | None = None) -> None:
        self.name: str = name
        self.sanitized: str = sanitize(name) if sanitized is None else sanitized

    @staticmethod
    def from_sanitized(sanitized: str) -> "Principal":
        """
        Return the principal with the tag `sanitized`, which is kept as it is.

        Raises:
            MalformedName: it is no sanitized name.

        """
        return Principal(desanitize(sanitized), sanitized)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Principal) and self.name == other.name and self.sanitized == other.sanitized

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[type["Principal"], tuple[str, str]]:
        return Principal, (self.name, self.sanitized)

    def __repr__(self) -> str:
        return f"Principal({self.name!r})"


ANONYMOUS: Final = Principal("ANONYMOUS")
"""The user of all clients on a listener without authentication."""
