"""What can be chosen."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LINES: Final = 5_000_000
ROWS: Final = 20_000_000
SIZES: Final = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
ENTITIES: Final = (2_000, 10_000, 100_000)
GIANTS: Final = (0.0, 0.3, 0.6)
"""Shares of the largest entity; 0 leaves it its share by Zipf's law, an eighth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Sizes and rounds."""

    scale: float = 1.0
    """Share of the full sizes."""
    rounds: int = 3
    memory: str = "4g"
    """Heap of Spark's JVM."""

    @property
    def lines(self) -> int:
        """Requests in the logs to be ingested."""
        return int(LINES * self.scale)

    @property
    def rows(self) -> int:
        """Rows of the histories to be replayed."""
        return int(ROWS * self.scale)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of the histories that show growth."""
        return tuple(int(each * self.scale) for each in SIZES)


def parse(
    description: str, cases: tuple[str, ...]
) -> tuple[Options, argparse.Namespace]:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=cases,
        default=cases,
        metavar="CASE",
        help=f"of {', '.join(cases)}",
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="share of the full sizes: 5 M lines, 20 M rows, 1 M to 100 M rows (default 1)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="times that each side works, in turns (default 3)",
    )
    parser.add_argument(
        "--memory", default="4g", help="heap of Spark's JVM (default 4g)"
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="file to write the results to; what it holds of other cases stays",
    )
    given = parser.parse_args()
    options = Options(scale=given.scale, rounds=given.rounds, memory=given.memory)
    return options, given
