"""
Costs of hostile agents for the others: lost scrapes, the longest of them, and the memory of the exporter.

    python -m benchmarks under-fire                       # all attacks
    python -m benchmarks under-fire bombs --scrapes 20    # one of them

The exporter is a process of its own, beside one good agent, and is scraped again and again: first in calm, then with
the attack.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
import zlib
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from socket import socket

import aiohttp
import yaml
from benchmarks.output import say
from benchmarks.process import peak_mib

MEBIBYTE = 1 << 20
_PAUSE_SECONDS = 1.1
"""Between two scrapes: longer than a collection is shown again."""
_TIMEOUT_SECONDS = 10.0
"""Timeout of a scrape that the exporter receives, as from Prometheus."""
_LATE_SECONDS = 10.0
"""A scrape that takes longer is lost, as it is for Prometheus."""
_PROGRAM = f"""
import sys
from quotascope.exporter import memory
memory.limit_bytes = lambda: {1 << 30}  # as in a container with 1 GiB
from quotascope.cli.main import main
sys.exit(main())
"""
_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one run."""

    scrapes: int
    lost: int
    """Scrapes without an answer in time, or without the good agent's clients."""
    first_seconds: float
    """The first one, before anything is known of the agents."""
    worst_seconds: float
    """Seconds of the longest scrape of all others."""
    peak_mebibytes: int
    """Resident memory of the exporter."""

    def __str__(self) -> str:
        return f"{self.scrapes} scrapes, {self.lost} lost, first {self.first_seconds:.2f} s, worst later {self.worst_seconds:.2f} s, peak {self.peak_mebibytes} MiB"


def good_page(clients: int) -> bytes:
    """Return the page of the good agent."""
    lines = ['kafka_server_app_info_starttimems{id="1"} 1']
    for number in range(clients):
        for metric in ("Produce_byte_rate", "Produce_throttle_time", "Fetch_byte_rate", "Request_request_time"):
            lines.append(f'kafka_server_{metric}{{client_id="app{number}",user="alice"}} {number}')  # noqa: PERF401 - two loops
    return "\n".join([*lines, ""]).encode()


@cache
def bomb() -> bytes:
    """Return an answer of 64 KiB that becomes 64 MiB of text."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    line = b'kafka_server_app_info_starttimems{id="2"} 1\n' + b"kafka_server_Produce_queue_size 0\n" * 30_000
    packed = b"".join(packer.compress(line) for _ in range(64)) + packer.flush()
    return b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed


@cache
def beans() -> bytes:
    """Return an answer of 20 MB that looks valid: 250,000 beans of Jolokia."""
    of_type = {
        f"kafka.server:client-id=c{number},type=Produce,user=u": {"byte-rate": 1.0, "throttle-time": 0.0}
        for number in range(220_000)
    }
    of_type["kafka.server:type=app-info,id=?"] = {"StartTimeMs": 1.0}
    missing = [{"status": 404}] * 13
    content = json.dumps([{"status": 200, "value": of_type}, *missing]).encode()
    return b"Content-Length: %d\r\n\r\n" % len(content) + content


@cache
def long_clients() -> bytes:
    """2,100 clients with client-ids of 32 kB, as text: twice 66 MiB."""
    names = [f"{'x' * 32_700}{number}" for number in range(2_100)]
    lines = ['kafka_server_app_info_starttimems{id="2"} 1']
    lines += [
        f'kafka_server_Produce_{kind}{{client_id="{name}"}} 1'
        for kind in ("byte_rate", "throttle_time")
        for name in names
    ]
    content = "\n".join([*lines, ""]).encode()
    return b"Content-Length: %d\r\n\r\n" % len(content) + content


@cache
def stalled() -> bytes:
    """Return the beginning of an answer of 60 MB, without its end."""
    return b"Content-Length: 63000000\r\n\r\n" + b"kafka_server_Produce_queue_size 0\n" * 500_000


ATTACKS: Mapping[str, tuple[int, str, Callable[[], bytes]]] = {
    "bombs": (6, "prometheus", bomb),
    "beans": (10, "jolokia", beans),
    "long names": (3, "prometheus", long_clients),
    "stalled": (8, "prometheus", stalled),
}
"""Attacks: the number of agents, their dialect, and the function that returns their answer."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("attacks", nargs="*", default=[*ATTACKS], metavar="ATTACK")
    parser.add_argument("--scrapes", type=int, default=12)
    parser.add_argument("--clients", type=int, default=1_000)


def main(options: argparse.Namespace) -> int:
    """Run the attacks that the command line names, and print the figures of each."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in (None, *options.attacks):
        say(f"{name or 'calm'}: {asyncio.run(run(name, options.scrapes, options.clients))}")
    return 0


async def run(attack: str | None, scrapes: int, clients: int) -> Figures:
    """Scrape an exporter beside a good agent, and those of an attack."""
    async with AsyncExitStack() as stack:
        page = good_page(clients)
        good = await stack.enter_async_context(serving(b"Content-Length: %d\r\n\r\n" % len(page) + page))
        sources = [{"name": "good", "url": good, "dialect": "prometheus"}]
        if attack is not None:
            number, dialect, make_answer = ATTACKS[attack]
            for place in range(number):
                answer = make_answer().replace(b"id=?", b"id=%d" % (place + 2))
                url = await stack.enter_async_context(serving(answer, waits=attack == "stalled"))
                sources.append({"name": f"bad{place}", "url": url, "dialect": dialect})
        process, url = await stack.enter_async_context(exporter(sources))
        return await _scraped(process, url, scrapes, clients)


async def _scraped(process: Process, url: str, scrapes: int, clients: int) -> Figures:
    lost, took = 0, list[float]()
    timeout = aiohttp.ClientTimeout(total=_LATE_SECONDS)
    headers = {"X-Prometheus-Scrape-Timeout-Seconds": f"{_TIMEOUT_SECONDS:g}"}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
        for _ in range(scrapes):
            started = time.monotonic()
            try:
                async with session.get(f"{url}/metrics") as answer:
                    text = await answer.text()
                    whole = answer.ok and text.count('kafka_quota_produce_bytes_per_second{broker="1"') >= clients
            except (aiohttp.ClientError, TimeoutError):
                whole = False
            lost += not whole
            took.append(time.monotonic() - started)
            await asyncio.sleep(_PAUSE_SECONDS)
    alive = process.returncode is None
    return Figures(
        scrapes=scrapes,
        lost=lost if alive else scrapes,
        first_seconds=took[0],
        worst_seconds=max(took[1:], default=0.0),
        peak_mebibytes=round(peak_mib(process.pid)) if alive else -1,
    )


@asynccontextmanager
async def exporter(sources: object) -> AsyncIterator[tuple[Process, str]]:
    """Yield an exporter that reads these sources, as a process of its own."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config = _written(
            Path(folder, "config.yaml"), {"server": {"address": "127.0.0.1", "port": port}, "sources": sources}
        )
        command = [sys.executable, "-c", _PROGRAM, "serve", "--config", str(config)]
        process = await asyncio.create_subprocess_exec(*command, stderr=DEVNULL)
        url = f"http://127.0.0.1:{port}"
        try:
            await _listening(url)
            yield process, url
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def _written(file: Path, content: object) -> Path:
    file.write_text(yaml.safe_dump(content))
    return file


async def _listening(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(300):
            try:
                async with session.get(f"{url}/-/healthy"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
    raise SystemExit("the exporter does not answer")


@asynccontextmanager
async def serving(answer: bytes, *, waits: bool = False) -> AsyncIterator[str]:
    """Yield an agent that gives every request this answer; ``waits`` when its end never comes."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(_HEAD + answer)
            await writer.drain()
            if waits:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(behave, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"
    finally:
        server.close()
