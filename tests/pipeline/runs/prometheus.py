"""Stands for a Prometheus that answers instant queries."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit


@contextmanager
def answering(series: Mapping[str, tuple[str, int, Mapping[str, float]]]) -> Iterator[tuple[str, list[str]]]:
    """Its URL, and what it is asked: each family has one user, a number of samples, and a value in some clusters."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            asked.append(query)
            user, count, values = next(each for name, each in series.items() if name in query)
            counted = query.startswith("max by (cluster)")
            names = {} if counted else {"user": user, "client_id": "c"}
            samples = [
                {"metric": names | {"cluster": cluster}, "value": [0, str(count if counted else value)]}
                for cluster, value in values.items()
            ]  # fmt: skip
            content = json.dumps({"data": {"result": samples}}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as declared
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
