"""What commands say of a cluster beside what they show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.exporter.examples import limits

from quotascope.cli.cluster import report_errors, warn_of_callbacks
from quotascope.exporter.diagnosis import Catalog
from quotascope.exporter.limits import NodeSettings

HOSTILE = "a\n\x1b[2J"


def test_what_an_exporter_sends_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Its findings, its nodes and their callbacks may hold anything."""
    warning = Catalog.NO_TRAFFIC.found(rules=HOSTILE)
    assert report_errors([Catalog.KAFKA_UNREACHABLE.found(error=HOSTILE, hint=HOSTILE), warning])
    assert not report_errors([warning])
    nodes = {HOSTILE: NodeSettings(quota_callback_class=HOSTILE)}
    assert warn_of_callbacks(replace(limits(), nodes=nodes)) == {HOSTILE: HOSTILE}
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(r"a\n\x1b[2J" in line for line in lines)
