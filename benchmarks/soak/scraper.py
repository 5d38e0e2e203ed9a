"""Scrapers, as Prometheus scrapes: one scrape after the other, each with its timeout."""

import asyncio
import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from benchmarks.soak.page import Expected, Page, faults, read_page, strictly_parsed
from benchmarks.soak.records import Book, Scrape

OPENMETRICS: Final = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
STRICTLY_EVERY: Final = 60
"""Number of scrapes that are read quickly before one is read by a whole parser, which takes long."""
_OK: Final = 200

Foresight = Callable[[float, dict[str, float]], Expected]
"""Function that returns the expectations of a second, after a page with these counters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """Manner in which a scraper scrapes."""

    name: str
    accept: str
    packed: bool
    """True if it takes gzip."""
    keeps_connection: bool
    every_seconds: float
    timeout_seconds: float

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a request."""
        return {
            "Accept": self.accept,
            "Accept-Encoding": "gzip" if self.packed else "identity",
            "User-Agent": f"{self.name}/1.0",
            "X-Prometheus-Scrape-Timeout-Seconds": f"{self.timeout_seconds:g}",
        }


@dataclass(slots=True)
class Scraper:
    """One scraper."""

    manner: Manner
    book: Book
    clock: Callable[[], float]
    foresight: Foresight
    _counters: dict[str, float] = field(default_factory=dict)
    _count: int = 0

    async def run(self, url: str) -> None:
        """Scrape until canceled."""
        connector = aiohttp.TCPConnector(force_close=not self.manner.keeps_connection, limit=1)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            while True:
                began = self.clock()
                self.book.add(await self._scrape(session, f"{url}/metrics", began))
                pause = began + self.manner.every_seconds - self.clock()
                await asyncio.sleep(max(pause, 0))

    async def _scrape(self, session: aiohttp.ClientSession, url: str, began: float) -> Scrape:
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self.manner.timeout_seconds):
                status, body = await _get(session, url, self.manner.headers)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            return self._scraped(began, start, lost=f"{type(error).__name__}: {error}")
        if status != _OK:
            return self._scraped(began, start, lost=f"HTTP {status}")
        scrape = self._scraped(began, start)
        return await asyncio.to_thread(self._judged, scrape, body, self.clock())

    def _scraped(self, began: float, start: float, lost: str = "") -> Scrape:
        return Scrape(at=began, scraper=self.manner.name, seconds=time.perf_counter() - start, lost=lost)

    def _judged(self, scrape: Scrape, body: bytes, moment: float) -> Scrape:
        """Return the scrape with the faults of its page."""
        problems: list[str] = []
        page = Page()
        try:
            text = (gzip.decompress(body) if self.manner.packed else body).decode()
            page = read_page(text)
            problems += faults(page, self.foresight(moment, self._counters))
            if self._count % STRICTLY_EVERY == 0:
                strictly_parsed(text)
        except (ValueError, OSError, EOFError) as error:
            problems.append(f"cannot be read: {error}")
        self._count += 1
        self._counters = page.counters
        return Scrape(
            at=scrape.at,
            scraper=scrape.scraper,
            seconds=scrape.seconds,
            size=len(body),
            samples=page.samples,
            faults=tuple(problems),
        )


async def _get(session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    async with session.get(url, headers=headers) as answer:
        return answer.status, await answer.read()
