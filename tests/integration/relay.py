"""A relay in front of the exporter that asks for the plain text format, and notes how it was asked itself."""

from email.message import Message
from http.server import ThreadingHTTPServer

from tests.servers import Handler

from . import web

_PASSED = ("Content-Type", "Content-Encoding")


class Relay(ThreadingHTTPServer):
    """Passes each request on with `Accept: text/plain`; Prometheus 2.42 cannot be made to prefer it."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.asked = Message()
        """The headers of the last request."""
        self.answered = Message()
        """The headers of the last answer."""
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        """`host:port` where it listens."""
        return f"127.0.0.1:{self.server_port}"


class _Handler(Handler):
    server: Relay

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        """Ask the target, and answer what it answers."""
        headers = {name: self.headers[name] for name in ("Accept-Encoding",)}
        answer = web.ask(self.server.target + self.path, headers={**headers, "Accept": "text/plain;version=0.0.4"})
        self.server.asked, self.server.answered = self.headers, answer.headers
        passed = {name: answer.headers[name] for name in _PASSED if name in answer.headers}
        self.answer(answer.status, answer.body, **passed)
