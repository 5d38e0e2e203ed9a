"""A verdict as people read it."""

from benchmarks.soak.verdict import Trend, Verdict
from rich.table import Table


def report(verdict: Verdict) -> Table:
    """Return the figures of a run."""
    table = Table(title="Soak", show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    rows = {
        "scrapes": f"{verdict.scrapes:,}",
        "of these lost": f"{verdict.lost:,}",
        "showed something wrong": f"{verdict.faulty:,}",
        "slowest": f"{verdict.slowest_seconds:.2f} s",
        "other requests, failed": f"{verdict.visits:,}, {verdict.failed_visits:,}",
        "memory, first and last quarter": _moved(verdict.memory, " MiB"),
        "memory, slope": f"{verdict.memory.per_hour:+.2f} MiB/h",
        "descriptors": _moved(verdict.fds),
        "threads": _moved(verdict.threads),
        "CPU of the exporter": f"{verdict.cores:.1%} of a core",
        "CPU of all around it": f"{verdict.other_cores:.1%} of a core",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _moved(trend: Trend, unit: str = "") -> str:
    return f"{trend.first:.1f} - {trend.last:.1f}{unit}"
