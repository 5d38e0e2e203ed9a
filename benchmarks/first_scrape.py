"""
Times the first scrape after a start: until `/metrics` answers, and how long the event loop was held meanwhile.

    python -m benchmarks first-scrape                        # ten brokers, 30,000 lines each
    python -m benchmarks first-scrape --brokers 3 --lines 5000

Each broker is behind an agent whose page is nothing but quotas, all of them new. The exporter is a process of its own
and is scraped until all brokers are up; meanwhile a client asks `/-/healthy` again and again: its longest wait is how
long the event loop was held, or had no core.
"""

import argparse
import asyncio
import time
from contextlib import AsyncExitStack

import aiohttp
from benchmarks.output import say
from benchmarks.process import cpu_seconds, peak_mib
from benchmarks.text_parser import page
from benchmarks.under_fire import exporter, serving

_PAUSE_SECONDS = 0.01
_LONGEST_SECONDS = 120


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--lines", type=int, default=30_000, help="quota lines of each broker")


def main(options: argparse.Namespace) -> int:
    """Print the figures of one start."""
    asyncio.run(_run(options.brokers, options.lines))
    return 0


async def _run(brokers: int, lines: int) -> None:
    answer = page(lines, lines, 0)
    async with AsyncExitStack() as stack:
        sources = []
        for number in range(brokers):
            url = await stack.enter_async_context(serving(b"Content-Length: %d\r\n\r\n" % len(answer) + answer))
            sources.append({"name": f"b{number}", "url": url, "dialect": "prometheus", "node_id": str(number + 1)})
        process, url = await stack.enter_async_context(exporter(sources))
        before, waits = cpu_seconds(process.pid), list[float]()
        asking = asyncio.create_task(_ask(url, waits))
        timeout = aiohttp.ClientTimeout(total=_LONGEST_SECONDS)
        headers = {"X-Prometheus-Scrape-Timeout-Seconds": str(_LONGEST_SECONDS)}
        started = time.monotonic()
        async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
            text = ""
            while text.count("quotascope_source_up{") < brokers or _down(text):
                async with session.get(f"{url}/metrics") as response:
                    text = await response.text()
                if time.monotonic() - started > _LONGEST_SECONDS:
                    raise SystemExit(f"first-scrape: not all sources are up after {_LONGEST_SECONDS} s")
                await asyncio.sleep(_PAUSE_SECONDS)
        seconds, used = time.monotonic() - started, cpu_seconds(process.pid)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        say(
            f"{brokers} brokers, {lines} lines each: /metrics has all after {seconds:.2f} s and {used - before:.2f} s of CPU "
            f"({len(text) / 1e6:.1f} MB), peak {peak_mib(process.pid):.0f} MiB; the longest wait for /-/healthy "
            f"{max(waits):.2f} s"
        )


def _down(text: str) -> bool:
    """Return whether a source of a page is not up."""
    lines = (line for line in text.splitlines() if line.startswith("quotascope_source_up{"))
    return any(not line.endswith(" 1.0") for line in lines)


async def _ask(url: str, waits: list[float]) -> None:
    """Ask whether the exporter is healthy again and again, and note the seconds that each answer takes."""
    async with aiohttp.ClientSession() as session:
        while True:
            started = time.monotonic()
            async with session.get(f"{url}/-/healthy"):
                waits.append(time.monotonic() - started)
            await asyncio.sleep(_PAUSE_SECONDS)
