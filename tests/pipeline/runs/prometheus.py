"""Stands for a Prometheus that answers instant queries."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.servers import Handler, served


@contextmanager
def answering(series: Mapping[str, tuple[str, int, Mapping[str, float]]]) -> Iterator[tuple[str, list[str]]]:
    """
    Its URL, and what it is asked.

    Each family has one user, a number of samples, and a value in some clusters; others have no series.
    """
    queries: list[str] = []

    class Prometheus(Handler):
        def do_GET(self) -> None:  # noqa: N802 - as the server calls it
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            queries.append(query)
            none: tuple[str, int, Mapping[str, float]] = ("", 0, {})
            user, count, values = next((each for name, each in series.items() if name in query), none)
            counted = query.startswith("max by (cluster)")
            names = {} if counted else {"user": user, "client_id": "c"}
            samples = [
                {"metric": names | {"cluster": cluster}, "value": [0, str(count if counted else value)]}
                for cluster, value in values.items()
            ]  # fmt: skip
            self.answer(200, json.dumps({"data": {"result": samples}}).encode())

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)) as server:
        yield f"http://127.0.0.1:{server.server_port}", queries
