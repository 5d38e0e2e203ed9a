"""Where pages arrive, and where their links lead: a small web server."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One alert of one message of Alertmanager's webhook (version 4)."""

    receiver: str
    status: str
    """`firing` or `resolved`."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Pager(ThreadingHTTPServer):
    """Takes webhooks, and serves the files of a folder under `/files/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.messages: list[Message] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def told(self, status: str, **labels: str) -> list[Message]:
        """The messages of that status about alerts with these labels, in order."""
        return [
            message
            for message in [*self.messages]
            if message.status == status and labels.items() <= message.labels.items()
        ]

    def take(self, body: Mapping[str, Any]) -> None:
        """Keep what a webhook says."""
        self.messages += [
            Message(
                receiver=body["receiver"],
                status=alert["status"],
                labels=alert["labels"],
                annotations=alert["annotations"],
            )
            for alert in body["alerts"]
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Pager

    def do_POST(self) -> None:
        """Take a message."""
        self.server.take(
            json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        )
        self._answer(200, b"")

    def do_GET(self) -> None:
        """Give a file."""
        path = self.server.folder / self.path.removeprefix("/files/")
        if path.is_file():
            self._answer(200, path.read_bytes())
        else:
            self._answer(404, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test says what matters."""


@contextmanager
def paged(folder: Path) -> Iterator[Pager]:
    """A pager for the length of a `with` block."""
    with Pager(folder) as pager:
        thread = threading.Thread(target=pager.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield pager
        finally:
            pager.shutdown()
            thread.join()
