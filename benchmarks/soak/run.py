"""
Runs the exporter for an hour among agents, brokers and visitors that behave badly: `make soak`.

The exporter is a process of its own, installed from the last commit. Eight agents answer as recorded ones did, with
clients that come and go, and refuse, hang, cut, redirect or babble in turns; nodes restart and come back as others,
files of discovery and the configuration change, a real Kafka is killed and frozen, a receiver of pushes is up and down.
Two scrapers look at each page for what they know to be true. It fails when a scrape is lost or wrong, or when memory,
descriptors or threads grow.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Final

from benchmarks.process import cpu_seconds, descriptors, resident_mib, threads
from benchmarks.soak.chaos import Chaos
from benchmarks.soak.exporter import SCRAPER_TIMEOUTS, Planted
from benchmarks.soak.guests import intrude, visit
from benchmarks.soak.picture import draw
from benchmarks.soak.progress import Progress
from benchmarks.soak.records import Book, Record, Usage, read_book
from benchmarks.soak.report import report
from benchmarks.soak.scraper import OPENMETRICS, Manner, Scraper
from benchmarks.soak.stage import Stage, staged
from benchmarks.soak.verdict import judge
from rich.console import Console

USAGE_SECONDS: Final = 10.0
FEWEST_USAGES: Final = 30
"""Least number of usages in a short run, where they come faster."""
MANNERS: Final = (
    Manner(
        name="first",
        accept=OPENMETRICS,
        packed=True,
        keeps_connection=True,
        every_seconds=1.0,
        timeout_seconds=SCRAPER_TIMEOUTS[0],
    ),
    Manner(
        name="second",
        accept="text/plain",
        packed=False,
        keeps_connection=False,
        every_seconds=2.0,
        timeout_seconds=SCRAPER_TIMEOUTS[1],
    ),
)


async def soak(stage: Stage, book: Book, minutes: float, planted: Planted) -> None:
    """Let everything happen for so long."""
    seconds = minutes * 60
    works = list(_works(stage, book, seconds))
    if planted is Planted.LOST:
        works.append(Chaos(stage, book).stop_exporter(seconds * 0.4))
    tasks = [asyncio.create_task(work) for work in works]
    ended, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()


def _works(stage: Stage, book: Book, seconds: float) -> Iterator[Coroutine[object, object, None]]:
    url, chaos = stage.exporter.url, Chaos(stage, book)
    for manner in MANNERS:
        yield Scraper(manner, book, stage.clock, stage.expected).run(url)
    yield visit(url, book, stage.clock)
    yield intrude(url)
    yield chaos.change_files()
    yield chaos.change_quotas()
    yield chaos.trouble_broker()
    yield chaos.reload()
    yield _watch(stage, book, min(USAGE_SECONDS, seconds / FEWEST_USAGES))
    yield Progress(book, stage.clock, seconds).run()


async def _watch(stage: Stage, book: Book, every_seconds: float) -> None:
    while True:
        stage.exporter.look()
        book.add(_usage(stage))
        await asyncio.sleep(every_seconds)


def _usage(stage: Stage) -> Usage:
    pid = stage.exporter.pid
    return Usage(
        at=stage.clock(),
        rss_mib=resident_mib(pid),
        fds=descriptors(pid),
        threads=threads(pid),
        cpu_seconds=cpu_seconds(pid),
        other_cpu_seconds=stage.other_cpu_seconds(),
        load=os.getloadavg()[0],
        errors=len(stage.exporter.unexpected),
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--per-second", type=float, default=5, help="new clients on each node")
    parser.add_argument("--records", type=Path, default=Path("soak.jsonl"), help="file of the records")
    parser.add_argument("--picture", type=Path, help="file to draw the run into")
    parser.add_argument("--judge", action="store_true", help="judge the records of an earlier run")
    parser.add_argument(
        "--plant", choices=list(Planted), default=Planted.NOTHING, help="a defect that the run has to find"
    )


def main(options: argparse.Namespace) -> int:
    """Run, print how it went, and return 1 if it did not go well."""
    console = Console()
    if options.judge:
        records = read_book(options.records)
    else:
        with options.records.open("w", encoding="utf-8") as file:
            records = _run(options, Book(file), console)
    verdict = judge(records)
    console.print(report(verdict))
    if options.picture:
        draw(records, verdict, options.picture)
    for failure in verdict.failures:
        console.print(f"failed: {failure}", style="red", markup=False)
    return 1 if verdict.failures else 0


def _run(options: argparse.Namespace, book: Book, console: Console) -> list[Record]:
    with tempfile.TemporaryDirectory(prefix="quotascope-soak-") as name:
        planted = Planted(options.plant)
        with staged(Path(name), options.per_second, planted) as (stage, commit):
            console.print(f"commit {commit}, records in {options.records}")
            asyncio.run(soak(stage, book, options.minutes, planted))
            for line in stage.exporter.unexpected[:10]:
                console.print(line, markup=False)
    return book.records
