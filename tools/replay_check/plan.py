"""What a log lets happen, in order."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from .decided import with_decisions
from .fetched import FetchSizes
from .log import RequestLog
from .mutations import charges_of
from .quota_changes import QuotaChange, quota_changes, timed
from .request import Request, requests_of
from .rules import Key, Rules

CHANGED: Final = 0
MUTATED: Final = 1
DECIDED: Final = 2
COMPLETED: Final = 3


class Event(NamedTuple):
    """A quota changed, mutations were charged, a request was decided on, or its answer had left; in one millisecond in this order."""

    at_ms: int
    kind: int
    line: int
    request: Request | None = None
    change: QuotaChange | None = None


class Plan:
    """
    All that does not depend on what the replay finds.

    Args:
        log: what happens.
        rules: under which rules.
        earlier_ms: by how many ms requests were decided on earlier than the log says, by line.

    """

    def __init__(
        self,
        log: RequestLog,
        rules: Rules,
        earlier_ms: Mapping[int, int] | None = None,
    ) -> None:
        timed_log = with_decisions(log)
        requests = [
            _moved(request, earlier_ms or {})
            for request in requests_of(timed_log.requests)
        ]
        quotas, changes = timed(rules, quota_changes(log))
        self.rules = rules
        self.quotas: Mapping[Key, float] = quotas
        self.fetched = FetchSizes(timed_log)
        self.charges: Mapping[int, tuple[int, ...]] = charges_of(requests)
        self.unreadable = log.unreadable
        self.events = sorted(
            [
                *(Event(c.at_ms, CHANGED, 0, change=c) for c in changes),
                *(event for request in requests for event in self._events(request)),
            ],
            key=lambda event: event[:3],
        )

    def _events(self, request: Request) -> Iterator[Event]:
        line = request.line
        if request.charged_ms is not None and line in self.charges:
            yield Event(request.charged_ms, MUTATED, line, request=request)
        yield Event(request.decided_ms, DECIDED, line, request=request)
        yield Event(request.completed_ms, COMPLETED, line, request=request)


def _moved(request: Request, earlier_ms: Mapping[int, int]) -> Request:
    if request.line not in earlier_ms:
        return request
    return replace(request, decided_ms=request.decided_ms - earlier_ms[request.line])
