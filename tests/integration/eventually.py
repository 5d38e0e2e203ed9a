"""Waiting for what must come true, without guessing how long it takes."""

import time
from collections.abc import Callable, Sized
from typing import TypeVar

Result = TypeVar("Result")
Some = TypeVar("Some", bound=Sized)


def eventually(check: Callable[[], Result], seconds: float = 30, pause: float = 0.1) -> Result:
    """The result of `check` as soon as it raises no AssertionError; its last one when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(pause)


def some(things: Some) -> Some:
    """The same, after the assertion that there are any."""
    assert things
    return things
