"""One address for the agents of all nodes, as an ingress gives one: `/NODE_ID/…` is passed on to that node's agent."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.cluster.node import Node

from . import web


class Gate(ThreadingHTTPServer):
    """Passes Jolokia's requests on; 502 when the node does not answer."""

    def __init__(self, nodes: Mapping[int, Node]) -> None:
        self.nodes = nodes
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        """`host:port` where it listens."""
        return f"127.0.0.1:{self.server_port}"

    @property
    def template(self) -> str:
        """The URL of every node's agent, to be filled in with its id."""
        return f"http://{self.address}/{{node_id}}/jolokia"

    def source(self, node_id: int) -> str:
        """The name that the exporter gives a node behind this gate."""
        return f"{self.address}/{node_id}/jolokia"


class _Handler(BaseHTTPRequestHandler):
    server: Gate

    def do_POST(self) -> None:
        """Ask the node, and answer what it answers."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        _, node_id, path = self.path.split("/", 2)
        agent = self.server.nodes[int(node_id)].agents.jolokia
        try:
            answer = web.ask(f"{agent}{path.removeprefix('jolokia/')}", body)
        except AssertionError:
            self.send_error(502)
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test says what matters."""


@contextmanager
def gate(nodes: Mapping[int, Node]) -> Iterator[Gate]:
    """A gate for the length of a `with` block."""
    with Gate(nodes) as opened:
        thread = threading.Thread(target=opened.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield opened
        finally:
            opened.shutdown()
            thread.join()
