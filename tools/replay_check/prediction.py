"""What the replay says of one request, by the quota that says it."""

from dataclasses import dataclass

from quotascope.metrics import QuotaType


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Throttles in ms, 0 where a quota has nothing against the request."""

    bytes_of: QuotaType | None = None
    """The byte-rate quota that the request falls under: Produce or Fetch."""
    bytes_ms: int = 0
    request_ms: int = 0
    mutation_ms: int = 0

    def by(self, kind: QuotaType) -> int:
        """What one quota says."""
        if kind is self.bytes_of:
            return self.bytes_ms
        if kind is QuotaType.REQUEST:
            return self.request_ms
        return self.mutation_ms if kind is QuotaType.CONTROLLER_MUTATION else 0

    @property
    def total_ms(self) -> int:
        """What the answer holds: the longest."""
        return max(self.bytes_ms, self.request_ms, self.mutation_ms, 0)

    @property
    def kind(self) -> QuotaType:
        """The quota that decides; a tie is the request quota's, as in Kafka."""
        if self.mutation_ms > self.request_ms:
            return QuotaType.CONTROLLER_MUTATION
        if self.bytes_of is not None and self.bytes_ms > self.request_ms:
            return self.bytes_of
        return QuotaType.REQUEST
