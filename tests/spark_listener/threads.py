"""Work of several threads at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_threads(work: Callable[[], None], count: int = 4) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
