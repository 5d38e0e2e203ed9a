"""Free ports of the loopback interface."""

import random
import socket

_choice = random.SystemRandom()  # not seeded by pytest: two runs at once must not choose the same ports
_given: set[int] = set()


def free_port() -> int:
    """
    Return a port without a listener that was not returned before in this process.

    It is below the range from which outgoing connections get theirs, so that it is still free when a node starts later.
    """
    while True:
        port = _choice.randrange(15_000, 32_000)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
