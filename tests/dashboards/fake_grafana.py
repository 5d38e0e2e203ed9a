"""
A small server that answers as Grafana's documented HTTP API does: folders, and saving dashboards.

It is no Grafana: status codes, messages and the fields it looks at are those of the API's reference.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.servers import Handler, served

Json = Any
TOKEN = "glsa_example"


class FakeGrafana:
    """The state of a fake Grafana: its requests, folders and dashboards, and the faults that it shows."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        self.dashboards: dict[str, Json] = {}
        self.requests: list[tuple[str, str]] = []
        self.provisioned: set[str] = set()
        """Uids that were loaded from files: they cannot be saved over."""
        self.redirect_to = ""
        self.url = ""

    def answer(self, method: str, path: str, token: str | None, body: Json) -> tuple[int, Json]:
        """Status and body of an answer."""
        self.requests.append((method, path))
        if token != f"Bearer {TOKEN}":
            return 401, {"message": "Invalid API key"}
        if method == "GET" and path.startswith("/api/folders/"):
            return self._folder(path.rpartition("/")[2])
        if (method, path) == ("POST", "/api/folders"):
            return self._make_folder(body)
        if (method, path) == ("POST", "/api/dashboards/db"):
            return self._save(body)
        return 404, {"message": "Not found"}

    def _folder(self, uid: str) -> tuple[int, Json]:
        if uid not in self.folders:
            return 404, {"message": "folder not found", "status": "not-found"}
        return 200, {"uid": uid, "title": self.folders[uid]}

    def _make_folder(self, body: Json) -> tuple[int, Json]:
        if body["uid"] in self.folders:
            return 412, {"message": "The folder has been changed by someone else"}
        self.folders[body["uid"]] = body["title"]
        return 200, {"id": 1, **body}

    def _save(self, body: Json) -> tuple[int, Json]:
        dashboard = body["dashboard"]
        uid = dashboard["uid"]
        if body["folderUid"] not in self.folders:
            return 400, {"message": "folder not found"}
        if uid in self.provisioned:
            return 400, {"message": "Cannot save provisioned dashboard"}
        if uid in self.dashboards and not body["overwrite"]:
            return 412, {"message": "The dashboard has been changed by someone else", "status": "version-mismatch"}
        self.dashboards[uid] = dashboard
        return 200, {"uid": uid, "url": f"/d/{uid}", "status": "success", "version": 1}


@contextmanager
def serving(grafana: FakeGrafana, certificate: Path | None = None) -> Iterator[None]:
    """Serve the fake Grafana on a free port, with TLS if there is a certificate (with its key)."""

    class Answers(Handler):
        def do_GET(self) -> None:  # noqa: N802 - the library's name
            self._answer(None)

        def do_POST(self) -> None:  # noqa: N802 - the library's name
            self._answer(json.loads(self.body()))

        def _answer(self, body: Json) -> None:
            status, reported = 302, {"message": "moved"}
            if not grafana.redirect_to:
                status, reported = grafana.answer(self.command, self.path, self.headers["Authorization"], body)
            self.answer(status, json.dumps(reported).encode(), Location=grafana.redirect_to)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    grafana.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    with served(server):
        yield
