"""A Prometheus that has a few series, as an object and as a server."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs

from tests.servers import Handler, served

from quotascope.pipeline.prometheus.past import Answer


class Prometheus:
    """
    A server that answers queries, and notes them.

    Each family has one user, a number of samples, and a value in some clusters; others have no series.
    """

    def __init__(self, series: Mapping[str, tuple[str, int, Mapping[str, float]]]) -> None:
        self._series = series
        self.queries: list[str] = []
        self.error: Exception | None = None
        """Raised by the next query."""

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        self.queries.append(promql)
        if self.error is not None:
            raise self.error
        none: tuple[str, int, Mapping[str, float]] = ("", 0, {})
        user, count, values = next((family for name, family in self._series.items() if name in promql), none)
        by_cluster = "group by (cluster)" in promql
        names = {} if by_cluster else {"user": user, "client_id": "c"}
        return [
            Answer(names | {"cluster": cluster}, [(at, float(count if by_cluster else value))])
            for cluster, value in values.items()
        ]


def one_cluster(_: object) -> None:
    """Accept all targets as those of one cluster."""


@contextmanager
def answering(series: Mapping[str, tuple[str, int, Mapping[str, float]]]) -> Iterator[str]:
    """Serve instant queries, and yield the address."""
    prometheus = Prometheus(series)

    class Queries(Handler):
        def do_POST(self) -> None:  # noqa: N802 - as the server calls it
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if form["query"] == ["time()"]:
                clock = {"resultType": "scalar", "result": [1_800_000_000, "1800000000"]}
                self.answer(200, json.dumps({"status": "success", "data": clock}).encode())
                return
            result = [
                {"metric": answer.labels, "value": [time, str(value)]}
                for answer in prometheus.ask(form["query"][0], float(form["time"][0]))
                for time, value in answer.samples
            ]
            document = {"status": "success", "data": {"resultType": "vector", "result": result}}
            self.answer(200, json.dumps(document).encode())

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Queries)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
