"""
Runs a benchmark: `python -m benchmarks NAME [options]`; without a name, it lists them.

The module of a benchmark has `add_options(parser)` and `main(options)`, which returns an exit code. What they share is
in `timing.py` (work in turns, ratios), `process.py` (CPU and memory of processes) and `output.py`.
"""

import argparse
import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from benchmarks.output import say

MODULES: Final = {
    "benefit": "benefit",
    "blame": "blame",
    "blame-scale": "blame_scale",
    "churn": "churn",
    "engine": "engine",
    "evening": "evening",
    "exposition": "exposition",
    "first-scrape": "first_scrape",
    "otlp": "otlp",
    "pipeline": "pipeline.cases",
    "pipeline-commits": "pipeline.commits",
    "pipeline-page": "pipeline.paper",
    "pipeline-tables": "pipeline.tables",
    "prometheus-history": "prometheus_history",
    "prometheus-samples": "prometheus_samples",
    "prometheus-truth": "truth.run",
    "rules": "rules.run",
    "sampling": "sampling",
    "scrape": "scrape",
    "shadow": "shadow",
    "shadow-scrape": "shadow_scrape",
    "shadow-stream": "shadow_stream",
    "soak": "soak.run",
    "spark-catch-up": "spark_catch_up",
    "spark-overhead": "spark_overhead",
    "teams": "teams",
    "teams-truth": "teams_truth",
    "text-parser": "text_parser",
    "under-fire": "under_fire",
}
"""Modules of the benchmarks by name."""


def subject(name: str) -> str:
    """Return the first paragraph of a benchmark's documentation, without importing its libraries."""
    file = Path(__file__).parent.joinpath(*MODULES[name].split(".")).with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that is named first, with the options after it; return its exit code."""
    parser = argparse.ArgumentParser("python -m benchmarks", description="Run a benchmark, or list them.")
    parser.add_argument(
        "name", nargs="?", choices=MODULES, metavar="NAME", help="a benchmark; NAME --help has its options"
    )
    name = parser.parse_args(arguments[:1]).name
    if name is None:
        for known in MODULES:
            say(f"{known:19} {subject(known)}")
        return 0
    module = import_module(f"benchmarks.{MODULES[name]}")
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}", description=subject(name))
    module.add_options(parser)
    code: int = module.main(parser.parse_args(arguments[1:]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
