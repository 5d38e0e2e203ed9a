"""What a comparison gave."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.pipeline.runs import Side, ratios


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Sides that did the same work, and facts about the work."""

    title: str
    sides: Sequence[Side]
    facts: dict[str, float] = field(default_factory=dict)
    """Such as bytes on disk, by name with unit."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        sides = {each.name: self._plain(each) for each in self.sides}
        return {"facts": self.facts, "sides": sides}

    def _plain(self, side: Side) -> dict[str, Any]:
        found = ratios(side, self.sides)
        compared = {
            "base": side.base,
            "min": min(found, default=None),
            "median": statistics.median(found) if found else None,
            "max": max(found, default=None),
        }
        runs = [asdict(run) for run in side.runs]
        return {
            "rows": side.rows,
            "runs": runs,
            "times_as_long": compared if found else None,
        }
