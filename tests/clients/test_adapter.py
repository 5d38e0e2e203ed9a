import importlib.metadata
import sys

import pytest

from quotascope.clients import (
    Connection,
    LibraryMissing,
    UnsupportedByLibrary,
    open_quota_admin,
)
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.adapter import open_topic_admin

CONNECTION = Connection(bootstrap_servers=("broker-1:9092",))
ADAPTER = "quotascope.clients.kafka_python"
TOPICS = "quotascope.clients.throttled_admin.topics"


def without(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Make a module impossible to import, and the adapter not yet imported."""
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    monkeypatch.setitem(sys.modules, module, None)


def test_nothing_connects_before_the_first_call() -> None:
    """An adapter can be had for a cluster that is not there."""
    admin = open_quota_admin(CONNECTION)
    admin.close()
    admin.close()


def test_topics_need_the_library_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing connects before the first call; without kafka-python the message says how to get it."""
    open_topic_admin(CONNECTION, ThrottleAccount()).close()
    without(monkeypatch, "kafka")
    monkeypatch.delitem(sys.modules, TOPICS)
    with pytest.raises(LibraryMissing):
        open_topic_admin(CONNECTION, ThrottleAccount())


@pytest.mark.parametrize(
    ("module", "error", "words"),
    [
        ("kafka", LibraryMissing, r"pip install 'quotascope\[kafka\]'"),
        (
            "kafka.protocol.admin",
            UnsupportedByLibrary,
            r"kafka-python 3\.\d+\.\d+ lacks something of kafka\.protocol\.admin",
        ),
    ],
    ids=["missing", "too old"],
)
def test_a_library_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, error: type[Exception], words: str
) -> None:
    """With the command that installs it, or its version."""
    without(monkeypatch, module)
    with pytest.raises(error, match=words):
        open_quota_admin(CONNECTION)


def test_a_library_of_unknown_version_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else that calls itself kafka is no traceback either."""

    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    without(monkeypatch, "kafka.protocol.admin")
    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(
        UnsupportedByLibrary, match=r"kafka-python \(unknown version\) lacks"
    ):
        open_quota_admin(CONNECTION)
