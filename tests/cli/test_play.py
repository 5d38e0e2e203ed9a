"""The demo's parts work together in one process."""

import re

import pytest

from quotascope.cli.play import play
from quotascope.exporter.config import Config

CONFIG = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0}})


async def test_ends_when_its_time_is_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all it still says where it is, shows the table once, and takes its leave."""
    monkeypatch.delenv("COLUMNS", raising=False)
    await play(CONFIG, 0)
    lines = capsys.readouterr().out.splitlines()
    assert any(
        re.match(r"For Prometheus: http://127\.0\.0\.1:\d+/metrics", line)
        for line in lines
    )
    assert len([line for line in lines if line.startswith("who ")]) == 1
    assert lines[-1].startswith("The demo ended after 0 s.")
