"""Partitions by topic from a file."""

from pathlib import Path

import pytest

from quotascope.pipeline.errors import BadSnapshot
from quotascope.pipeline.request_log.snapshot import read_snapshot


def test_read(tmp_path: Path) -> None:
    """An object of topics and numbers."""
    path = tmp_path / "topics.json"
    path.write_text('{"orders": 12, "é\\n": 1}')
    assert read_snapshot(path) == {"orders": 12, "é\n": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"a": "3"}', '{"a": 1.5}', "a: 3"])
def test_not_a_snapshot(tmp_path: Path, text: str) -> None:
    """Anything else is refused with the file's name and an example."""
    path = tmp_path / "topics.json"
    path.write_text(text)
    with pytest.raises(BadSnapshot, match=r'topics.json: .*"orders": 12'):
        read_snapshot(path)


def test_no_file(tmp_path: Path) -> None:
    """So is a file that is not there."""
    with pytest.raises(BadSnapshot, match="No such file"):
        read_snapshot(tmp_path / "none.json")
