"""Work that is repeated beside other work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def repeated(call: Callable[[], object], seconds: float, name: str) -> Iterator[None]:
    """
    Call a function in a thread while the block runs, each time after a pause of ``seconds``.

    The block ends when the last call has. ``name`` is the thread's; the function must not raise.
    """
    over = Event()

    def loop() -> None:
        while not over.wait(seconds):
            call()

    thread = Thread(target=loop, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
