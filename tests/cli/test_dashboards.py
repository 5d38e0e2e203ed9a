"""The command that puts dashboards into a Grafana."""

from __future__ import annotations

import sys

import pytest
from tests.dashboards.fake_grafana import TOKEN, FakeGrafana, serving

from quotascope.alerts import Dashboard
from quotascope.cli.main import main


def test_push_takes_the_token_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every dashboard is put there, for the label that was asked for, and its address printed."""
    fake = FakeGrafana()
    with serving(fake):
        monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
        command = [
            "dashboards",
            "push",
            "--grafana-url",
            fake.url,
            "--cluster-label",
            "kafka",
        ]
        monkeypatch.setattr(sys, "argv", ["quotascope", *command])
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 0
    assert set(fake.dashboards) == {each.uid for each in Dashboard}
    assert capsys.readouterr().out.splitlines() == [
        f"{fake.url}/d/{each.uid}" for each in Dashboard
    ]
    assert "{kafka=~" in str(fake.dashboards)
