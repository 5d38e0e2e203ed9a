"""Waiting for what must come true, without guessing how long it takes; and asking on and on meanwhile."""

import threading
import time
from collections.abc import Callable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")
Some = TypeVar("Some", bound=Sized)


def eventually(check: Callable[[], Result], seconds: float = 30, pause: float = 0.1) -> Result:
    """Return the result of `check` as soon as it raises no AssertionError; raise the last one when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(pause)


def some(items: Some) -> Some:
    """Return the items, after the assertion that there are any."""
    assert items
    return items


@contextmanager
def again_and_again(ask: Callable[[], Result], pause: float = 0.0) -> Iterator[list[Result]]:
    """Yield the answers so far while a thread asks, some seconds after the last answer; none may fail."""
    enough, answers = threading.Event(), list[Result]()

    def loop() -> None:
        while not enough.wait(pause):
            answers.append(ask())

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(loop)
        try:
            yield answers
        finally:
            enough.set()
        asking.result()
