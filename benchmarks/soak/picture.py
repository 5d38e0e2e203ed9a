"""A run as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
from benchmarks.soak.records import Event, Record, Scrape, Usage
from benchmarks.soak.verdict import WARM_UP, Verdict

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

_MINUTE: Final = 60
_BLUE, _ORANGE, _GRAY, _RED = "#1f6fb4", "#d1701a", "#777777", "#c01c28"


def draw(records: Sequence[Record], verdict: Verdict, path: Path) -> None:
    """Memory, handles and scrapes over time."""
    usages = [record for record in records if isinstance(record, Usage)]
    scrapes = [record for record in records if isinstance(record, Scrape)]
    figure, (memory, handles, times) = plt.subplots(3, 1, figsize=(9, 8), sharex=True, layout="constrained")
    _memory(memory, usages, verdict)
    _handles(handles, usages)
    _times(times, scrapes, [record for record in records if isinstance(record, Event)])
    times.set_xlabel("minutes")
    for axes in (memory, handles, times):
        axes.set_ylim(0, axes.get_ylim()[1] * 1.15)  # room for the legend
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{verdict.scrapes:,} scrapes, {verdict.lost} lost, {verdict.faulty} wrong")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _memory(axes: Axes, usages: Sequence[Usage], verdict: Verdict) -> None:
    minutes = [usage.at / _MINUTE for usage in usages]
    axes.plot(minutes, [usage.rss_mib for usage in usages], color=_BLUE)
    ready = minutes[0] + WARM_UP * (minutes[-1] - minutes[0])
    axes.axvspan(minutes[0], ready, color=_GRAY, alpha=0.15, lw=0)
    axes.set_ylabel("resident memory, MiB")
    slope = f"{verdict.memory.per_hour:+.1f} MiB/h after the warm-up (gray)"
    axes.set_title(slope, loc="left", fontsize=10)


def _handles(axes: Axes, usages: Sequence[Usage]) -> None:
    minutes = [usage.at / _MINUTE for usage in usages]
    axes.plot(minutes, [usage.fds for usage in usages], color=_BLUE, label="descriptors")
    axes.plot(minutes, [usage.threads for usage in usages], color=_ORANGE, label="threads")
    axes.legend(frameon=False, loc="upper right", ncols=2)
    axes.set_ylabel("open")


def _times(axes: Axes, scrapes: Sequence[Scrape], events: Sequence[Event]) -> None:
    good = [scrape for scrape in scrapes if not scrape.lost and not scrape.faults]
    bad = [scrape for scrape in scrapes if scrape.lost or scrape.faults]
    for group, color in ((good, _BLUE), (bad, _RED)):
        minutes = [scrape.at / _MINUTE for scrape in group]
        axes.scatter(minutes, [scrape.seconds for scrape in group], s=3, color=color)
    for event in events:
        if event.what.startswith("Kafka is killed"):
            axes.axvline(event.at / _MINUTE, color=_ORANGE, lw=0.8, alpha=0.6)
    axes.set_ylabel("seconds of a scrape")
    axes.set_title("slow where a node hangs; Kafka is killed at the orange lines", loc="left", fontsize=10)
