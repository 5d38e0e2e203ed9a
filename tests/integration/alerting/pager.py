"""Where pages arrive, and where their links lead: a small web server."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.servers import Handler


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

    def reported(self, status: str, **labels: str) -> list[Message]:
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


class _Handler(Handler):
    server: Pager

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        """Take a message."""
        self.server.take(json.loads(self.body()))
        self.answer(200)

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        """Give a file."""
        path = self.server.folder / self.path.removeprefix("/files/")
        if path.is_file():
            self.answer(200, path.read_bytes())
        else:
            self.answer(404)
