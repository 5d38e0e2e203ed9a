"""Which partitions a Fetch reads, with its session's memory of those that it does not name (KIP-227)."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

Json: TypeAlias = Any

_NO_SESSION: Final = 0
_FULL: Final = (-1, 0)
"""Epochs of a request that names every partition: without a session, and opening one."""


class Wanted(NamedTuple):
    """A partition, from which offset, and how many bytes at most."""

    topic: str
    partition: int
    offset: int
    most: int


class Sessions:
    """Fetch sessions of one broker, as its log tells of them."""

    def __init__(self) -> None:
        self._known: dict[int, dict[tuple[str, int], Wanted]] = {}

    def wanted(self, message: Json) -> tuple[Wanted, ...]:
        """The partitions that a Fetch reads, in its order; call it for each Fetch in the order of the log."""
        request, response = message["request"], message["response"]
        named = {(want.topic, want.partition): want for want in _named(request)}
        if request.get("sessionEpoch", -1) in _FULL:
            opened = response.get("sessionId", _NO_SESSION)
            if opened != _NO_SESSION:
                self._known[opened] = named
            return tuple(named.values())
        session = self._known.setdefault(request.get("sessionId", _NO_SESSION), {})
        for topic in request.get("forgottenTopicsData", ()):
            for partition in topic["partitions"]:
                session.pop((_topic(topic), partition), None)
        session.update(named)
        return tuple(session.values())


def _named(request: Json) -> Iterator[Wanted]:
    for topic in request["topics"]:
        for partition in topic["partitions"]:
            yield Wanted(
                _topic(topic),
                partition["partition"],
                partition["fetchOffset"],
                partition["partitionMaxBytes"],
            )


def _topic(topic: Json) -> str:
    return str(topic.get("topic") or topic["topicId"])
