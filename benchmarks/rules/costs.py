"""Costs in seconds."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of something that was done several times."""

    name: str
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...] = ()
    """CPU time of Prometheus, on all cores; empty where that is not known."""
    series: int = 0
    """Number of resulting series."""
    interval: float = 0
    """Seconds from one time to the next, of rules."""

    @property
    def median(self) -> float:
        """Half took longer."""
        return statistics.median(self.seconds)


def table(title: str, costs: Sequence[Cost], goal: float | None = None) -> Table:
    """Return costs as people read them."""
    result_table = Table(title=title)
    result_table.add_column("")
    for heading in ("median ms", "min", "max", "CPU ms", "of its interval", "series"):
        result_table.add_column(heading, justify="right")
    for cost in costs:
        result_table.add_row(cost.name, *_cells(cost, goal))
    return result_table


def _cells(cost: Cost, goal: float | None) -> Sequence[str]:
    color = "red" if goal is not None and cost.median > goal else "default"
    return (
        f"[{color}]{cost.median * 1e3:.0f}[/]",
        f"{min(cost.seconds) * 1e3:.0f}",
        f"{max(cost.seconds) * 1e3:.0f}",
        f"{statistics.median(cost.cpu_seconds) * 1e3:.0f}" if cost.cpu_seconds else "",
        f"{cost.median / cost.interval:.1%}" if cost.interval else "",
        f"{cost.series:,}" if cost.series else "",
    )
