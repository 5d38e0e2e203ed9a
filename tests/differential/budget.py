"""How many operations a run compares, and what it has compared so far."""

import os
import random
from collections import Counter

import pytest
from tests.differential.kafka import JARS

OPS_VARIABLE = "QUOTASCOPE_DIFFERENTIAL_OPS"
SEED_VARIABLE = "QUOTASCOPE_DIFFERENTIAL_SEED"
DEFAULT_OPS = 20_000
SHRINKABLE_AT_MOST = 5_000
"""Operations per subject that Hypothesis draws one by one; what exceeds them comes from seeded generators."""


def _total() -> int:
    return int(os.environ.get(OPS_VARIABLE, DEFAULT_OPS))


def marks() -> list[pytest.MarkDecorator]:
    """The marks of every comparison: it needs Java, and time in proportion to its operations."""
    return [pytest.mark.java, pytest.mark.timeout(300 + _total() // 1000)]


class Budget:
    """Shares out the operations of a run among its subjects and counts what was really compared."""

    def __init__(self) -> None:
        self.total = _total() // len(JARS)
        """For each release."""
        self.seed = int(os.environ.get(SEED_VARIABLE, random.SystemRandom().randrange(2**32)))
        self.compared: Counter[str] = Counter()

    def shrinkable(self, share: float) -> int:
        """How many operations of a subject with this share of the whole are drawn by Hypothesis."""
        return min(SHRINKABLE_AT_MOST, round(self.total * share / 2))

    def seeded(self, share: float) -> int:
        """How many operations of a subject with this share come from seeded generators."""
        return round(self.total * share) - self.shrinkable(share)

    def report(self) -> str:
        """One line for the end of the run."""
        parts = ", ".join(f"{subject} {n:,}" for subject, n in sorted(self.compared.items()))
        return f"{self.compared.total():,} operations compared ({parts}); {SEED_VARIABLE}={self.seed}"
