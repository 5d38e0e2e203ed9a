"""A real Alertmanager on the loopback interface, and where its messages arrive."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.ports import free_port
from tests.integration import web
from tests.integration.child import Child
from tests.integration.eventually import eventually
from tests.servers import Handler


class Alertmanager:
    """An Alertmanager that keeps its configuration, data and log in a folder."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
        assert program, "no `alertmanager`: run `make services`"
        folder.mkdir(parents=True)
        self.address = f"127.0.0.1:{free_port()}"
        path = folder / "alertmanager.yml"
        path.write_text(yaml.safe_dump(dict(config)))
        command = [
            program,
            f"--config.file={path}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
        ]
        self.child = Child(command, folder / "alertmanager.log")

    def ready(self) -> None:
        """AssertionError until it serves."""
        self.child.must_run()
        assert web.ask(f"http://{self.address}/-/ready").status == 200

    def alerts(self, state: str) -> list[dict[str, Any]]:
        """Return the alerts of the Alertmanager in a state: `active` or `suppressed`."""
        self.child.must_run()
        answer = web.ask(f"http://{self.address}/api/v2/alerts")
        assert answer.status == 200, answer.text
        return [alert for alert in json.loads(answer.body) if alert["status"]["state"] == state]


@contextmanager
def alerting(folder: Path, config: Mapping[str, Any]) -> Iterator[Alertmanager]:
    alertmanager = Alertmanager(folder, config)
    try:
        eventually(alertmanager.ready)
        yield alertmanager
    finally:
        alertmanager.child.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An alert of a message of Alertmanager's webhook (version 4)."""

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
        return f"http://127.0.0.1:{self.server_port}"

    def reported(self, status: str, **labels: str) -> list[Message]:
        """Return the messages of that status about alerts with these labels, in order."""
        return [
            message
            for message in [*self.messages]
            if message.status == status and labels.items() <= message.labels.items()
        ]

    def take(self, body: Mapping[str, Any]) -> None:
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
        self.server.take(json.loads(self.body()))
        self.answer(200)

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        path = self.server.folder / self.path.removeprefix("/files/")
        if path.is_file():
            self.answer(200, path.read_bytes())
        else:
            self.answer(404)
