"""
Answers with `--prometheus` beside those of the request log: `python -m benchmarks prometheus-truth`.

A real broker with jmx_exporter, Strimzi's reporter and Jolokia logs its requests while loads of eight kinds run, and a
real Prometheus scrapes each agent every 5, 10, 15, 30 and 60 s. Both then answer the same questions about these
minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.truth.compare import compare
from benchmarks.truth.record import Recording, record


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the length of the recording, and where it stays."""
    parser.add_argument("--minutes", type=float, default=45, help="length of the recording")
    parser.add_argument("--seeds", type=int, default=4, help="clients of each kind of load")
    parser.add_argument("--folder", type=Path, help="where the recording stays; with one in it, that is compared again")


def main(options: argparse.Namespace) -> int:
    """Print the figures; 1 if an unmarked answer is wrong."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "truth"
        if (folder / "recording.json").exists():
            recording = Recording.load(folder)
        else:
            recording = record(folder, options.minutes, options.seeds)
        return compare(recording)
