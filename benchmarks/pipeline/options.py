"""Options of a run."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.spark.versions import ROOT

PYTHON: Final = Path(".venv/bin/python")
BEFORE: Final = ", before"
"""Suffix of the names of the other checkout's sides."""

LINES: Final = 5_000_000
ROWS: Final = 20_000_000
SIZES: Final = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
ENTITIES: Final = (2_000, 10_000, 100_000)
GROWN: Final = (1_000_000, 5_000_000, 20_000_000)
"""Rows of the histories that show growth beside another checkout."""
GIANTS: Final = (0.0, 0.3, 0.6)
"""Shares of the largest entity; 0 leaves it its share by Zipf's law, an eighth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The code that is measured."""

    root: Path

    @property
    def is_other(self) -> bool:
        """True if it is the checkout that this one is compared with."""
        return self.root != ROOT

    def named(self, name: str) -> str:
        """Name a side by whose code it runs."""
        return f"{name}{BEFORE}" if self.is_other else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Sizes and rounds."""

    scale: float = 1.0
    """Share of the full sizes."""
    rounds: int = 3
    memory: str = "4g"
    """Heap of Spark's JVM."""
    beside: Path | None = None
    """Another checkout of this repository, with its `.venv`: measured in place of the peers."""

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
        sizes = GROWN if self.beside else SIZES
        return tuple(int(size * self.scale) for size in sizes)

    @property
    def checkouts(self) -> tuple[Checkout, ...]:
        """The one that runs, and the other one."""
        this = Checkout(root=ROOT)
        return (this, Checkout(root=self.beside)) if self.beside else (this,)


def declare(parser: argparse.ArgumentParser, cases: tuple[str, ...]) -> None:
    """Declare the options of a run of some of the cases."""
    parser.add_argument(
        "--only", nargs="+", choices=cases, default=cases, metavar="CASE", help=f"of {', '.join(cases)}"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="share of the full sizes: 5 M lines, 20 M rows, 1 M to 100 M rows (default 1)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="times that each side works, in turns (default 3)")
    parser.add_argument("--memory", default="4g", help="heap of Spark's JVM (default 4g)")
    parser.add_argument(
        "--beside",
        type=existing,
        metavar="FOLDER",
        help="another checkout with its .venv, which does the same in turns; ratios are of CPU time, to its, instead of times to those of other programs",
    )
    parser.add_argument("--json", type=Path, help="file to write the results to; what it holds of other cases stays")


def options_of(arguments: argparse.Namespace) -> Options:
    """Return the sizes and rounds of a command line."""
    return Options(scale=arguments.scale, rounds=arguments.rounds, memory=arguments.memory, beside=arguments.beside)


def existing(folder: str) -> Path:
    """Return a checkout's folder. Raises `argparse.ArgumentTypeError` where it has no interpreter."""
    checkout = Path(folder).resolve()
    if not (checkout / PYTHON).exists():
        raise argparse.ArgumentTypeError(f"{checkout} has no {PYTHON}: make it there first")
    return checkout
