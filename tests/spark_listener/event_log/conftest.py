"""What the tests of event logs share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.spark_listener.event_log.logs import Open

from quotascope.spark_listener.event_log import EventLog


@pytest.fixture(name="open_log")
def _open_log() -> Iterator[Open]:
    """Opens logs and closes them at the end."""
    with ExitStack() as logs:

        def open_log(path: Path) -> EventLog:
            return logs.enter_context(EventLog(path))

        yield open_log
