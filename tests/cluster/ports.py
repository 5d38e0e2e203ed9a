"""Free ports of the loopback interface."""

import random
import socket

_choice = random.SystemRandom()  # not seeded by pytest: two runs at once must not choose the same ports
_given: set[int] = set()


def free_port() -> int:
    """
    Return a port that no one listens on and that was not returned before in this process.

    Its node may only start later.

    Taken below the range from which outgoing connections get theirs, so that it is still free when a node restarts.
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
