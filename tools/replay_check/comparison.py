"""Predicted against reported, request by request and in total."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from quotascope.metrics import QuotaType

from .prediction import Prediction
from .request import Request

CLOSE_MS: Final = 3
"""A prediction this near is called the same."""
TOLERANCE: Final = {
    QuotaType.PRODUCE: 0.05,
    QuotaType.FETCH: 0.05,
    QuotaType.CONTROLLER_MUTATION: 0.05,
    QuotaType.REQUEST: 0.20,
}
"""How far a total may be off, as a ratio of what was reported."""
LEAST_S: Final = 1.0
"""Seconds: the error of a total below this counts as a ratio of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One answer."""

    request: Request
    prediction: Prediction
    reported_by: QuotaType
    """The quota that the reported throttle is put down to; of an answer without one, that which the replay names."""
    known: bool
    """False for a throttled Fetch whose size nothing in the log tells: its throttle may be the byte rate's."""

    @property
    def reported_ms(self) -> int:
        """The throttle in the answer."""
        return max(self.request.told_ms, 0)

    def counted_by(self, kind: QuotaType) -> bool:
        """Whether a quota has to do with the request."""
        if kind is QuotaType.REQUEST:
            return not self.request.exempt
        if kind is QuotaType.CONTROLLER_MUTATION:
            return self.request.charged_ms is not None
        return self.prediction.bytes_of is kind

    def close(self, kind: QuotaType) -> bool:
        """Whether a quota's prediction is near the answer, or, where another quota gave it, not longer."""
        error_ms = self.prediction.by(kind) - self.reported_ms
        least_ms = -CLOSE_MS if self.reported_by is kind else -self.reported_ms
        return least_ms <= error_ms <= CLOSE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All answers to one client that one quota had to do with."""

    user: str
    client_id: str
    kind: QuotaType
    requests: int
    """Those that this quota has to do with."""
    throttled: int
    """Those that were throttled by it."""
    close: int
    """Those whose prediction is near the answer (`Comparison.close`)."""
    reported_s: float
    predicted_s: float
    unknown: int
    """Throttled answers that cannot be predicted, and are left out of all other figures but `requests`."""

    @property
    def error(self) -> float:
        """Predicted less reported, as a ratio of the reported seconds or of `LEAST_S`."""
        return (self.predicted_s - self.reported_s) / max(self.reported_s, LEAST_S)

    @property
    def holds(self) -> bool:
        """Whether the error is within `TOLERANCE`."""
        return abs(self.error) <= TOLERANCE[self.kind]


def totals(comparisons: Iterable[Comparison]) -> list[Total]:
    """By client and quota, of those that either the broker or the replay throttled."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for each in comparisons:
        who = each.request.principal.name, each.request.client_id
        groups.setdefault(who, []).append(each)
    found = [total for who in sorted(groups) for total in _totals(who, groups[who])]
    return [
        total
        for total in found
        if total.reported_s or total.predicted_s or total.unknown
    ]


def _totals(who: tuple[str, str], group: list[Comparison]) -> Iterator[Total]:
    user, client_id = who
    for kind in QuotaType:
        counted = [each for each in group if each.counted_by(kind)]
        known = [each for each in counted if each.known]
        reported = [each for each in known if each.reported_by is kind]
        predicted = [each for each in known if each.prediction.kind is kind]
        yield Total(
            user=user,
            client_id=client_id,
            kind=kind,
            requests=len(counted),
            throttled=sum(each.reported_ms > 0 for each in reported),
            close=sum(each.close(kind) for each in known),
            reported_s=sum(each.reported_ms for each in reported) / 1000,
            predicted_s=sum(each.prediction.total_ms for each in predicted) / 1000,
            unknown=sum(not e.known and e.reported_by is kind for e in counted),
        )
