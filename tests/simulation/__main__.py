"""
Simulates by new seeds: `make simulate`.

It runs for hours with ARGS='--seconds 7200', and repeats a seed with ARGS='--only exporter --seed 4711'. `history` are
commands that are killed and overtaken, `exporter` is the exporter's core among agents that misbehave, `listener` is the
Spark listener on events that are lost, late, damaged or contradict each other.
"""

import argparse
import gc
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from secrets import randbelow
from tempfile import TemporaryDirectory
from typing import Final

from . import history
from .exporter import simulation as exporter
from .listener import simulation as listener

SIMULATIONS: Final[dict[str, Callable[[int, Path], object]]] = {
    "history": history.simulate,
    "exporter": exporter.simulate,
    "listener": listener.simulate,
}
"""By name; each raises an `AssertionError` with the seed and its steps where something does not hold."""

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of a random name within
"""Where there is one, what is written costs no disk: a command that is killed leaves the same there."""


def main() -> int:
    """Return 1 when a rule did not hold, else 0."""
    parser = argparse.ArgumentParser(prog="make simulate ARGS=…", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each simulation")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--only", choices=SIMULATIONS)
    options = parser.parse_args()
    gc.freeze()  # what was imported stays
    logging.disable(logging.CRITICAL)
    return max(_broken(name, options) for name in SIMULATIONS if options.only in {None, name})


def _broken(name: str, options: argparse.Namespace) -> int:
    began, seeds, broken = time.monotonic(), 0, 0
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        while not seeds or (options.seed is None and time.monotonic() - began < options.seconds):
            seed = randbelow(10**9) if options.seed is None else options.seed
            seeds += 1
            try:
                SIMULATIONS[name](seed, Path(folder, str(seed)))
            except AssertionError as error:
                broken += 1
                _say(str(error))
    seconds = time.monotonic() - began
    if broken:
        _say(
            "Put the seed into FOUND of the tests of this simulation once it holds; "
            f"again: ARGS='--only {name} --seed SEED'"
        )
    _say(f"{name}: {seeds} seeds in {seconds:.0f} s, {60 * seeds / seconds:.0f} a minute, {broken} do not hold")
    return int(broken > 0)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
