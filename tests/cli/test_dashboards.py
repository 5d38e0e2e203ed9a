"""The command that puts dashboards into a Grafana."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Run
from tests.dashboards.fake_grafana import TOKEN, FakeGrafana, serving

from quotascope.alerts import Dashboard


def test_push_takes_the_token_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dashboard is put there, for the label that was asked for, and its address printed."""
    fake = FakeGrafana()
    with serving(fake):
        monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
        code, out, _ = run("dashboards", "push", "--grafana-url", fake.url, "--cluster-label", "kafka")
    assert code == 0
    assert set(fake.dashboards) == {each.uid for each in Dashboard}
    assert out.splitlines() == [f"{fake.url}/d/{each.uid}" for each in Dashboard]
    assert "{kafka=~" in str(fake.dashboards)
