"""Servers of a few lines: what a client meets when it does not meet a Kafka broker."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Behavior = Callable[[socket.socket], object]


@contextmanager
def server(behave: Behavior) -> Iterator[str]:
    """Yield `host:port` of a server that calls a function for every connection and then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, behave))
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listening: socket.socket, behave: Behavior) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            try:
                behave(connection)
            except OSError:
                continue


def answering(*answers: bytes) -> Behavior:
    """Reads a request before each of these answers, then closes the connection."""

    def behave(connection: socket.socket) -> None:
        for answer in answers:
            connection.recv(1000)
            connection.sendall(answer)

    return behave


def silent(connection: socket.socket) -> None:
    """Reads everything and never answers."""
    while connection.recv(1000):
        pass


def closed_port() -> str:
    """Return `host:port` without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"127.0.0.1:{listening.getsockname()[1]}"
