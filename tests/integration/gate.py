"""One address for the agents of all nodes, as an ingress gives one: `/NODE_ID/…` is passed on to that node's agent."""

from collections.abc import Mapping
from http.server import ThreadingHTTPServer

from tests.cluster.node import Node
from tests.servers import Handler

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


class _Handler(Handler):
    server: Gate

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        """Ask the node, and answer what it answers."""
        _, node_id, path = self.path.split("/", 2)
        agent = self.server.nodes[int(node_id)].agents.jolokia
        try:
            answer = web.ask(f"{agent}{path.removeprefix('jolokia/')}", self.body())
        except AssertionError:
            self.send_error(502)
            return
        self.answer(answer.status, answer.body)
