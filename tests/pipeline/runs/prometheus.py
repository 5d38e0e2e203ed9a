"""Stands for a Prometheus that answers instant queries."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.servers import Handler, served


@contextmanager
def answering(series: Mapping[str, tuple[str, Mapping[str, float]]]) -> Iterator[tuple[str, list[str]]]:
    """Its URL, and what it is asked: each family has one user, and a value in some clusters."""
    asked: list[str] = []

    class Prometheus(Handler):
        def do_GET(self) -> None:  # noqa: N802 - as the server calls it
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            asked.append(query)
            found = next(each for name, each in series.items() if name in query)
            samples = [
                {"metric": {"user": found[0], "client_id": "c", "cluster": cluster}, "value": [0, str(value)]}
                for cluster, value in found[1].items()
            ]
            self.answer(200, json.dumps({"data": {"result": samples}}).encode())

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)) as server:
        yield f"http://127.0.0.1:{server.server_port}", asked
