"""An inclusive bound on a metric's value."""

from .native import mypyc_attr


@mypyc_attr(acyclic=True)
class Quota:
    """
    A bound that a value may reach but not pass (Kafka: `Quota`).

    NaN is never acceptable. Two quotas are equal when bound and direction are.
    """

    __slots__ = ("bound", "upper")

    def __init__(self, bound: float, upper: bool = True) -> None:  # noqa: FBT001, FBT002 - as Kafka's
        self.bound: float = float(bound)
        self.upper: bool = upper

    def acceptable(self, value: float) -> bool:
        """Return whether the value keeps to the bound."""
        if self.upper:
            return value <= self.bound
        return value >= self.bound

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quota) and self.bound == other.bound and self.upper == other.upper

    def __hash__(self) -> int:
        return hash((self.bound, self.upper))

    def __reduce__(self) -> tuple[type["Quota"], tuple[float, bool]]:
        return Quota, (self.bound, self.upper)

    def __repr__(self) -> str:
        return f"Quota({self.bound}, {'upper' if self.upper else 'lower'})"
