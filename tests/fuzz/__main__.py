"""
Fuzzes the readers of text from outside with atheris: `make fuzz`, or `python -m tests.fuzz --help`.

An input that finds something is kept in tests/fuzz/corpus, which the gate feeds to its reader from then on.
"""

import argparse
import sys
import time
from pathlib import Path

from .running import ROOT, Outcome, Run
from .target import NAMES, target


def main() -> int:
    """Return 1 when an input was found that breaks a reader, else 0."""
    parser = argparse.ArgumentParser(prog="make fuzz ARGS=…", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=0, help="repeats the same run")
    parser.add_argument("--kept", type=Path, default=ROOT / ".fuzz", help="where inputs are kept that reached new code")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(NAMES):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(NAMES)}")
    return max(_fuzzed(name, options) for name in options.targets or NAMES)


def _fuzzed(name: str, options: argparse.Namespace) -> int:
    fuzzed = target(name)
    started = time.monotonic()

    def progress(outcome: Outcome) -> None:
        seconds = time.monotonic() - started
        _say(f"{name}: {outcome.executions:,} inputs in {seconds:.0f} s")

    outcome = Run(
        target=fuzzed, kept=options.kept / name, findings=fuzzed.corpus, seconds=options.seconds, seed=options.seed
    ).outcome(progress)
    progress(outcome)
    if outcome.found:
        _say("\n".join(outcome.lines))
        _say(f"{name}: FOUND SOMETHING; its input is in {fuzzed.corpus}")
    return int(outcome.found)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
