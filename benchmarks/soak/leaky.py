"""`quotascope` with a leak of a mebibyte and a descriptor a second: what a run has to find (`--plant leak`)."""

import os
import threading
import time

from quotascope.cli.main import main

_kept: list[object] = []


def _leak() -> None:
    while True:
        _kept.append(bytearray(b"x" * 2**20))
        _kept.append(os.open(os.devnull, os.O_RDONLY))
        time.sleep(1)


if __name__ == "__main__":
    threading.Thread(target=_leak, daemon=True).start()
    main()
