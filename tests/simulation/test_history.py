"""A few seeds of the simulation of a history: what `make simulate` does for hours."""

from pathlib import Path
from secrets import randbelow

import pytest

from .history import simulate

FOUND = (125364642, 534347154, 491005630)
"""Seeds that showed something once."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*FOUND, *range(6)])
def test_a_seed(seed: int, tmp_path: Path) -> None:
    """Whatever is killed, overtaken or damaged, no row is lost or doubled without being said."""
    simulate(seed, tmp_path / "history")


@pytest.mark.slow
def test_new_seeds(tmp_path: Path) -> None:
    """Seeds of this run hold; the message of one that does not hold names it."""
    for _ in range(3):
        seed = randbelow(10**9)
        simulate(seed, tmp_path / str(seed))
