"""An object store that refuses whatever it is asked: `python -m tests.pipeline.table.object_store 403 AccessDenied`; without an answer it hangs up."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = sys.argv[1:]


class Store(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if not ANSWER:
            self.close_connection = True
            return
        status, code = ANSWER
        body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        self.send_response(int(status))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: 0 if self.command == "HEAD" else None])

    do_HEAD = do_GET  # noqa: N815 - as the server calls it

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
