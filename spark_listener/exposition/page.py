"""The page that Prometheus scrapes in the driver."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.registry import Collector

_LOG = logging.getLogger(__name__)
PATH: Final = "/metrics"
_MOST_AT_ONCE = 16
"""
Most connections at once, so that no flood takes the driver's threads.

A further one takes the place of the one that has waited longest for its client.
"""
_PATIENCE_SECONDS = 10.0
"""
Longest time that a client may take to send its request and to take the answer, however many bytes it sends: Prometheus
gives up after as long.
"""
_GRACE_SECONDS = 0.5
"""
Time that a connection keeps its place though it is needed: its answer may have just been computed, and not be sent yet.
"""
_PAUSE_SECONDS = 0.05
"""Time between two looks for a place."""
_COMPUTING: Final = "quotascope.computing"
"""Key of the WSGI environment: a context in which the connection does not wait for its client."""


class DriverPage:
    """
    Server of a collector over HTTP until it is closed.

    Args:
        collector: asked for every scrape, in a thread of its own.
        bind_address: a name or an address of this machine; empty for all of its addresses.
        port: 0 for any free one.

    Raises:
        OSError: the address cannot be bound.

    """

    def __init__(self, collector: Collector, bind_address: str, port: int) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        self._server = _Server(bind_address, port)
        self._server.set_app(_only_metrics(make_wsgi_app(registry)))
        self._thread = threading.Thread(target=self._server.serve_forever, name="quotascope-page", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Port of the page."""
        return self._server.server_port

    def close(self) -> None:
        """Stop listening; a scrape under way may end."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass(slots=True)
class _Connection:
    """State of a connection: its start, and whether its answer is being computed; otherwise it waits for its client."""

    since: float = field(default_factory=time.monotonic)
    computing: bool = False


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """
    Server with a thread for each connection, in a bounded number of places.

    A timeout of the socket does not bound a client that sends or takes a byte now and then. So a connection that waits
    for its client is ended after `_PATIENCE_SECONDS` in all, and when its place is needed; a scrape sends its request
    at once and is not among the longest.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, bind_address: str, port: int) -> None:
        self._lock = threading.Lock()
        self._open: dict[socket.socket, _Connection] = {}
        # of a name with several addresses, the first
        (self.address_family, _, _, _, address), *_ = socket.getaddrinfo(
            bind_address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        super().__init__((str(address[0]), int(address[1])), _Handler)

    def server_bind(self) -> None:
        """Bind the address as `HTTPServer` does, but for the host's name."""
        # without the look-up of the host's full name that HTTPServer makes, which can take seconds
        socketserver.TCPServer.server_bind(self)
        self.server_name = "localhost"
        self.server_port = self.socket.getsockname()[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as declared
        """Serve a connection in a thread of its own, or close it if there is no place for it."""
        if not self._has_room():
            self.shutdown_request(request)
            return
        with self._lock:
            self._open[request] = _Connection()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the driver has no thread left
            self._left(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as declared
        """Serve a connection in its thread, and then free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._left(request)

    def service_actions(self) -> None:
        """End connections with clients that took too long; `serve_forever` calls this twice a second."""
        self._end(cutoff=time.monotonic() - _PATIENCE_SECONDS)

    @contextmanager
    def computing(self, request: socket.socket) -> Iterator[None]:
        """Mark a connection as computing within the block: it is not waiting for its client, and keeps its place."""
        connection = self._open.get(request, _Connection())
        began = time.monotonic()
        connection.computing = True
        try:
            yield
        finally:
            connection.since += time.monotonic() - began  # only the time spent waiting for the client is bounded
            connection.computing = False

    def _has_room(self) -> bool:
        """
        Return whether there is a place for one more connection.

        While answers are computed in all places, newcomers wait as long as a scrape would.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(self._open) >= _MOST_AT_ONCE and not self._end(limit=1, cutoff=time.monotonic() - _GRACE_SECONDS):
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def _end(self, *, cutoff: float, limit: int = _MOST_AT_ONCE) -> int:
        """
        End connections that have waited for their clients since before a time, the oldest first.

        Return their number.
        """
        with self._lock:
            slow = [
                request
                for request, connection in self._open.items()
                if not connection.computing and connection.since < cutoff
            ]
            for request in slow[:limit]:
                del self._open[request]
                with suppress(OSError):  # its client has gone
                    request.shutdown(socket.SHUT_RDWR)  # this ends its thread
        return len(slow[:limit])

    def _left(self, request: socket.socket) -> None:
        """Free the place of a connection."""
        with self._lock:
            self._open.pop(request, None)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: a broken scrape does not belong in the job's log."""


class _Handler(WSGIRequestHandler):
    """Handler of one request, which tells the server when the answer is computed."""

    timeout = _PATIENCE_SECONDS
    server: _Server

    def get_environ(self) -> dict[str, Any]:
        """
        Return the environment with the context in which the application computes the answer.

        The connection keeps its place meanwhile.
        """
        return {
            **super().get_environ(),
            _COMPUTING: self.server.computing(self.request),
        }

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as declared
        """Log nothing."""


WsgiApplication = Callable[..., Iterable[bytes]]


def _only_metrics(metrics: WsgiApplication) -> WsgiApplication:
    """Return an application that serves the metrics at `PATH` alone."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer requests for the metrics, with a sentence if there is an error; any other path is not found."""
        if environ.get("PATH_INFO") != PATH:
            return _say(start, "404 Not Found", f"The metrics of this Spark job are at {PATH}")
        try:
            with environ[_COMPUTING]:
                return metrics(environ, start)
        except Exception as error:  # noqa: BLE001 - or else wsgiref prints it into the job's log
            _LOG.debug("a scrape failed", exc_info=True)
            reason = f"The state of this job cannot be read: {type(error).__name__}"
            return _say(start, "500 Internal Server Error", reason)

    return answer


def _say(start: Callable[..., Any], status: str, text: str) -> Iterable[bytes]:
    """Answer with a sentence."""
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]
