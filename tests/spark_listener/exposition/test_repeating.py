import threading

import pytest

from quotascope.spark_listener.exposition.repeating import Repeating


def test_it_calls_until_it_is_closed() -> None:
    """At once, then again, and in the end what is last."""
    calls: list[str] = []
    thrice = threading.Event()

    def call() -> None:
        calls.append("call")
        if len(calls) == 3:
            thrice.set()

    repeating = Repeating(call, 0.001, "test", lambda: calls.append("last"))
    assert thrice.wait(30)
    assert repeating.close(30)
    assert calls.count("last") == 1
    assert calls[-1] == "last"


def test_a_call_that_fails_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    """With a line in the log that shows none of its text."""
    twice = threading.Event()
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        if len(calls) == 2:
            twice.set()
        raise RuntimeError("geheim")

    repeating = Repeating(call, 0.001, "test")
    assert twice.wait(30)
    assert repeating.close(30)
    assert "RuntimeError" in caplog.text
    assert "geheim" not in caplog.text
