"""What has to be known about logs."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from quotascope.pipeline.errors import BadOption, BadSnapshot
from quotascope.pipeline.ingest import IngestOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zone": "Mars/Base"}, "not a zone; use a name such as Europe/Berlin"),
        ({"zone": "../etc/passwd"}, "not a zone"),
        ({"broker_pattern": "("}, "the broker pattern"),
        ({"broker_pattern": "broker"}, "needs one group"),
        ({"broker": "1", "broker_pattern": "(1)"}, "not both"),
    ],
)
def test_options_without_sense(options: dict[str, Any], message: str) -> None:
    """A wrong option is reported at once, before anything is read."""
    with pytest.raises(BadOption, match=message):
        IngestOptions(**options)


def test_sent_to_workers() -> None:
    """IngestOptions work the same in another process."""
    options = pickle.loads(pickle.dumps(IngestOptions(broker_pattern="b-([0-9])", zone="Asia/Tokyo")))  # fmt: skip  # noqa: S301 - ours
    source = options.source("x/b-3/log")
    assert (source.broker, str(source.zone)) == ("3", "Asia/Tokyo")
    assert options.source("x").broker is None
    assert options.topics() == {}


def test_a_snapshot(tmp_path: Path) -> None:
    """An object of topics and numbers."""
    path = tmp_path / "topics.json"
    path.write_text('{"orders": 12, "é\\n": 1}')
    assert IngestOptions(snapshot=str(path)).topics() == {"orders": 12, "é\n": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"a": "3"}', '{"a": 1.5}', "a: 3", None])
def test_not_a_snapshot(tmp_path: Path, text: str | None) -> None:
    """Anything else is refused with the file's name and an example, and so is a file that is not there."""
    path = tmp_path / "topics.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadSnapshot, match=r'topics.json.*"orders": 12'):
        IngestOptions(snapshot=str(path)).topics()
