"""
Plays an hour of a cluster to a Prometheus within minutes.

The exporter's own text, with the time of each moment on every line, is served in parts. Each scrape of a part gives the
next moment, until all has been given; then a moment is given once it has come.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from benchmarks.rules.fleet import Fleet
from tests.servers import served

from quotascope.dashboards.recorded import ENTITY_UTILIZATION_RECENT
from quotascope.exporter.exposition import Renderer
from quotascope.metrics.catalog import UTILIZATION

PARTS: Final = 10
STEP_SECONDS: Final = 60
VARIANTS: Final = 5


class Tape:
    """
    The moments of a cluster, one in each minute.

    Args:
        fleet: The cluster.
        start: Unix time in seconds of the first moment.

    """

    def __init__(self, fleet: Fleet, start: float) -> None:
        self._start = int(start)
        renderer = Renderer()
        self._pages = [
            _parts(renderer.render(fleet.snapshot(start + number), start + number)) for number in range(VARIANTS)
        ]
        self.series = sum(part.count(b"\n") for part in self._pages[0])
        self._next = [0] * PARTS
        self._history = _utilization(self._pages[0])

    @property
    def behind(self) -> float:
        """Seconds between the last moment that was taken of every part and now."""
        return time.time() - self._start - min(self._next) * STEP_SECONDS

    def take(self, part: int, *, history: bool = True) -> bytes:
        """Return the next moment of a part; nothing when it has not come yet."""
        step = self._next[part]
        moment = self._start + step * STEP_SECONDS
        if moment > time.time():
            return b""
        self._next[part] = step + 1
        lines = self._pages[step % VARIANTS][part]
        if history and part == 0:
            lines += b"".join(line + b"\n" for line in self._history)
        return lines.replace(b"\n", b" %d000\n" % moment)

    def earlier(self, hours: float, cluster: str) -> Iterator[bytes]:
        """Yield recorded utilization in the hours before the start, as OpenMetrics for promtool."""
        label = f'{{cluster="{cluster}",'.encode()
        lines = [line.replace(b"{", label, 1) for line in self._history]
        begin = self._start - int(hours * 3600)
        for moment in range(begin, self._start - STEP_SECONDS, STEP_SECONDS):
            end = b" %d\n" % moment
            yield b"".join([line + end for line in lines])
        yield b"# EOF\n"


def _parts(page: bytes) -> Sequence[bytes]:
    lines = [line for line in page.splitlines() if not line.startswith(b"#")]
    return [b"".join(line + b"\n" for line in lines[n::PARTS]) for n in range(PARTS)]


def _utilization(page: Sequence[bytes]) -> list[bytes]:
    """Return the utilization on the first broker under the name of the recorded series, which has no broker."""
    start = f'{UTILIZATION.name}{{broker="1",'.encode()
    recorded = f"{ENTITY_UTILIZATION_RECENT}{{".encode()
    return [
        recorded + line.removeprefix(start) for part in page for line in part.splitlines() if line.startswith(start)
    ]


class Player(ThreadingHTTPServer):
    """Gives the parts of a tape under their numbers."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.history = True
        """Whether recorded series are given, too: until the rules record them."""
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Player

    def do_GET(self) -> None:
        """Give the next moment of the part that the path names."""
        part = int(self.path.strip("/"))
        body = self.server.tape.take(part, history=self.server.history)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def playing(tape: Tape) -> Iterator[Player]:
    """Serve a tape for the length of a `with` block."""
    with served(Player(tape)) as server:
        yield server
