"""What is said about logs."""

import pickle
from typing import Any

import pytest

from quotascope.pipeline.errors import BadOption
from quotascope.pipeline.ingest import Options


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"zone": "Mars/Base"}, "no zone; use a name such as Europe/Berlin"),
        ({"zone": "../etc/passwd"}, "no zone"),
        ({"broker_pattern": "("}, "the broker pattern"),
        ({"broker_pattern": "broker"}, "needs one group"),
        ({"broker": "1", "broker_pattern": "(1)"}, "not both"),
    ],
)
def test_options_without_sense(options: dict[str, Any], told: str) -> None:
    """A wrong option is told at once, before anything is read."""
    with pytest.raises(BadOption, match=told):
        Options(**options)


def test_sent_to_workers() -> None:
    """Options work the same in another process."""
    options = pickle.loads(pickle.dumps(Options(broker_pattern="b-([0-9])", zone="Asia/Tokyo")))  # fmt: skip  # noqa: S301 - ours
    source = options.source("x/b-3/log")
    assert (source.broker, str(source.zone)) == ("3", "Asia/Tokyo")
    assert options.source("x").broker is None
    assert options.topics() == {}
