"""
An object store that refuses whatever it is asked.

`python -m tests.pipeline.table.object_store 403 AccessDenied`; without an answer it hangs up.
"""

import sys
from http.server import ThreadingHTTPServer

from tests.servers import Handler

ANSWER = sys.argv[1:]


class Store(Handler):
    def do_GET(self) -> None:  # noqa: N802 - as the server calls it
        if not ANSWER:
            self.close_connection = True
            return
        status, code = ANSWER
        body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        self.answer(int(status), b"" if self.command == "HEAD" else body)

    do_HEAD = do_GET  # noqa: N815 - as the server calls it


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
