"""A relay before a node's agent, which keeps what the agent answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

from tests.cluster.node import Node
from tests.servers import Handler, served

from . import agent, web


class AgentRelay(ThreadingHTTPServer):
    """Passes bulk requests on to a Jolokia, with the same answer."""

    daemon_threads = True  # an exporter keeps its connections

    def __init__(self, node: Node) -> None:
        self.target = node.agents.jolokia
        self.answers: list[bytes] = []
        """Answers in their order; may be cleared."""
        super().__init__(("127.0.0.1", 0), _Relaying)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/jolokia"

    def numbers(self) -> dict[agent.Key, float | None] | None:
        """Return the attributes of quotas in the only answer; None without one, or of several."""
        answers = list(self.answers)
        if len(answers) != 1:
            return None
        items: list[dict[str, Any]] = json.loads(answers[0])
        return agent.numbers_of(items)


class _Relaying(Handler):
    protocol_version = "HTTP/1.1"
    server: AgentRelay

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        answer = web.ask(self.server.target, self.body())
        self.server.answers.append(answer.body)
        self.answer(answer.status, answer.body, Content_Type=answer.headers["Content-Type"])


@contextmanager
def relaying(nodes: Iterable[Node]) -> Iterator[list[AgentRelay]]:
    """Yield a relay for each node, in their order."""
    with ExitStack() as stack:
        yield [stack.enter_context(served(AgentRelay(node))) for node in nodes]
