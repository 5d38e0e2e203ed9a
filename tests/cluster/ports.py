"""Free ports of the loopback interface."""

import random
import socket

_choice = (
    random.SystemRandom()
)  # not seeded by pytest: two runs at once must not choose the same ports


def free_port() -> int:
    """
    A port that nobody listens on.

    Taken below the range from which outgoing connections get theirs, so that it is still free when a node restarts.
    """
    while True:
        port = _choice.randrange(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
