"""Clients that come, stay for less than a minute, and never come back."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

STAY_SECONDS: Final = 40.0
HOSTILE: Final = (
    '"quoted", and=more',
    "line\nbreak",
    "back\\slash\\",
    "<script>alert(1)</script>",
    "emoji \U0001f980 and \u202e right to left",
    "tab\tand\x1b[31mred",
    "{{template}} ${variable} %s",
    "",
)
LONG: Final = 10_000
USERS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Identity of a client."""

    number: int
    user: str
    client_id: str


class Crowd:
    """
    The clients of one node.

    Half of them are clients of other nodes as well, under the same name.

    Args:
        node: Its name.
        per_second: How many come.

    """

    def __init__(self, node: str, per_second: float) -> None:
        self._node = node
        self._per_second = per_second

    def at(self, seconds: float, since: float) -> Iterator[Client]:
        """
        Yield the clients that are there some seconds after the beginning.

        The node has been there only since `since`.
        """
        earliest = max(since, seconds - STAY_SECONDS)
        for number in range(ceil(earliest * self._per_second), self.seen(seconds)):
            yield self._client(number)

    def seen(self, seconds: float) -> int:
        """Return the number of clients that have come so far."""
        return int(seconds * self._per_second)

    def _client(self, number: int) -> Client:
        of_all = number % 2 == 0
        name = f"{'all' if of_all else self._node}-{number:07d}"
        return Client(number=number, user=f"team {number % USERS}", client_id=_dressed(name, number))


def _dressed(name: str, number: int) -> str:
    """Some have names that would break a naive reader or writer, and some are left out by their names."""
    if number % 50 == 7:  # noqa: PLR2004 - one in fifty
        return f"{name} {HOSTILE[number // 50 % len(HOSTILE)]}"
    if number % 1_000 == 13:  # noqa: PLR2004 - one in a thousand
        return name + "x" * LONG
    if number % 10 == 3:  # noqa: PLR2004 - one in ten
        return f"console-{name}"
    return name
