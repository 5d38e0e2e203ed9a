"""Answers of agents about a node, and agents that give them."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from http.server import ThreadingHTTPServer
from typing import Final

from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer
from tests.servers import Handler

from quotascope.exporter.sources.jolokia import REQUESTS
from quotascope.metrics.kafka.jmx import mbean_name
from quotascope.metrics.kafka.sanitizer import sanitize

Beans = dict[str, dict[str, float]]
"""Attributes of beans by their names."""
MISSING: Final = {"status": 404, "error": "No MBean with pattern"}
FAILED: Final = {"status": 500, "error": "no MBeanInfo"}


def node(node_id: str = "1") -> Beans:
    """Return the bean in which a node reports its id."""
    return {f"kafka.server:type=app-info,id={node_id}": {"StartTimeMs": 1.0}}


def client(group: str, user: str, client_id: str, **attributes: float) -> Beans:
    """Return the bean of a client; `_` in the name of an attribute stands for a hyphen."""
    name = mbean_name("kafka.server", group, [("user", sanitize(user)), ("client-id", client_id)])
    return {name: {attribute.replace("_", "-"): value for attribute, value in attributes.items()}}


def item(beans: object) -> dict[str, object]:
    """Return the part of an answer with the beans of one pattern."""
    return {"status": 200, "value": beans}


def items(*content: object) -> bytes:
    """Return an answer of Jolokia with these parts."""
    return json.dumps(content).encode()


def jolokia(beans: Mapping[str, object]) -> bytes:
    """Return an answer of Jolokia with these beans under its first pattern, and with no others."""
    return items(item(beans), *[MISSING] * (len(REQUESTS) - 1))


def jolokia_of(beans: bytes) -> bytes:
    """Return the same from the JSON between the braces, which may be no JSON."""
    return jolokia({}).replace(b"{}", b"{%s}" % beans, 1)


def text_of(clients: Iterable[str], user: str = "alice") -> bytes:
    """Return the page of a jmx_exporter about a node with these client ids of a user."""
    lines = ['kafka_server_app_info_starttimems{id="1"} 1', "kafka_server_Produce_queue_size 0"]
    for name in clients:
        labels = f'{{client_id="{name}",user="{user}"}}'
        lines += [f"kafka_server_Produce_byte_rate{labels} 1", f"kafka_server_Produce_throttle_time{labels} 1"]
    return "\n".join([*lines, ""]).encode()


@asynccontextmanager
async def answered_by(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]], path: str = "/{path:.*}"
) -> AsyncIterator[BaseTestServer]:
    """Yield a server of which each request to the path has this answer."""
    app = web.Application()
    app.router.add_route("*", path, answer)
    async with TestServer(app) as server:
        yield server


class Agent(ThreadingHTTPServer):
    """Agent that gives every POST the same answer, as Jolokia would."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Jolokia)
        self.url = f"http://127.0.0.1:{self.server_port}/jolokia"
        self.answer = answer
        self.authorizations: list[str] = []
        """What the requests identified themselves with."""
        self.asked = threading.Event()
        """Set by each request."""
        self.go_on = threading.Event()
        """A request is answered when this is set."""
        self.go_on.set()
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def close(self) -> None:
        """Answer what is under way, and nothing more."""
        self.go_on.set()
        self.shutdown()
        self.server_close()


class _Jolokia(Handler):
    server: Agent

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self.body()
        self.server.authorizations.append(self.headers.get("Authorization", ""))
        self.server.asked.set()
        self.server.go_on.wait()
        self.answer(200, self.server.answer)
